# For Nomad clients with NVIDIA GPUs. The plugin nomad-device-nvidia is not part of
# Nomad: put its program into plugin_dir. It reports whole GPUs as nvidia/gpu, and
# slices of MIG by their profile, such as nvidia/gpu/1g.10gb.

plugin "nomad-device-nvidia" {
  config {
    enabled            = true
    fingerprint_period = "1m"
  }
}
