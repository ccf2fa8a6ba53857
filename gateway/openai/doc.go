// Package openai is OpenAI's API as far as its clients need it: chat completions, completions and
// embeddings, whole and in parts, and its errors. An app is a model there. The package reads requests
// and writes answers; how they are asked is the caller's business.
package openai
