app {
  url = ""
}

pack {
  name        = "topsail"
  description = "Topsail serves machine-learning models under a latency promise."
  version     = "0.1.0"
}
