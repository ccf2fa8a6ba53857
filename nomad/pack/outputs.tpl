Topsail [[ meta "pack.version" . ]] is registered in namespace [[ var "namespace" . ]].

Queries go to port [[ var "gateway_port" . ]] of the gateways, and the management side listens on port [[ var "web_port" . ]]
(0: on ports that Nomad chooses). See where, and when they are ready:

  nomad job status -namespace [[ var "namespace" . ]] topsail-gateway
