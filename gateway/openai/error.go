package openai

import (
	"encoding/json"

	"github.com/topsail-serving/topsail/serving"
)

// AppendStatus appends the error of a status in OpenAI's form. param is the member that is wrong, or
// empty.
func AppendStatus(b []byte, status int, message, param string) []byte {
	kind, code := "server_error", ""
	switch status {
	case 400, 409, 413, 415, 422, 431:
		kind = "invalid_request_error"
	case 401:
		kind, code = "authentication_error", "invalid_api_key"
	case 403:
		kind = "permission_error"
	case 404:
		kind, code = "invalid_request_error", "model_not_found"
	case 429:
		kind, code = "rate_limit_error", "rate_limit_exceeded"
	}
	return appendError(b, kind, message, param, code)
}

// AppendError appends the error of an answer that was cut.
func AppendError(b []byte, cause serving.Cause, message string) []byte {
	kind := "server_error"
	if cause == serving.BadInput {
		kind = "invalid_request_error"
	}
	return appendError(b, kind, message, "", cause.String())
}

func appendError(b []byte, kind, message, param, code string) []byte {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	e := body{Message: message, Type: kind, Param: orNull(param), Code: orNull(code)}
	text, _ := json.Marshal(map[string]body{"error": e}) // of texts
	return append(b, text...)
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
