"""Many small models in one process: `python -m topsail host`.

A host serves bundles that its sidecar asks it to load, each as a container of its own would, and drops them when it is
asked to.

main thread                    loader thread                 link thread
                               load, announce           <-   LOAD: requests.put
inbox.wait, run, send     <-                                 PREDICT: inbox.put
                               close, announce          <-   UNLOAD: requests.put
"""
