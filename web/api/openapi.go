package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.yaml
var contract []byte

func getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(contract) // a client that left needs no answer
	return nil
}
