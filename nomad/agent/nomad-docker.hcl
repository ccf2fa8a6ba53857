# For Nomad clients that run Topsail or its models in docker. The jobs use the host's
# network, so that a container reaches its sidecar on loopback.

plugin "docker" {
  config {
    # Models are large: keep their images for when they come back from zero.
    gc {
      image_delay = "24h"
    }

    # Host volumes and the files of sidecars are mounted into containers.
    volumes {
      enabled = true
    }

    # For GPUs, by the NVIDIA container toolkit.
    nvidia_runtime = "nvidia"
  }
}
