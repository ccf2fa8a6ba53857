// Package api serves /api/v1: apps, models, versions, replicas and all else that is
// managed, as JSON. Its contract is openapi.yaml, which is served with it.
package api
