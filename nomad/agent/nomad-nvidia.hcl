# For Nomad clients with NVIDIA GPUs. The plugin nomad-device-nvidia is not part of
# Nomad: put its program into plugin_dir, under the name of the block below, without
# which Nomad does not load it. It reports GPUs and slices of MIG as nvidia/gpu; a
# version that asks for nvidia/gpu/1g.10gb gets slices of that profile.

plugin "nomad-device-nvidia" {
  config {
    enabled            = true
    fingerprint_period = "1m"
  }
}
