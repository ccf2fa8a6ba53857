// Package nvidia gives the NVIDIA GPUs of this machine to the replicas of local mode, as
// Nomad's device plugin does on a cluster.
package nvidia
