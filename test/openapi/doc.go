// Package openapi holds requests and answers to an OpenAPI document, in tests.
package openapi
