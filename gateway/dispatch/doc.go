// Package dispatch gets answers to questions from the replicas of a model version. A Call asks one
// replica, and a second one when the first fails or is silent for too long. Questions of a version
// without a ready replica are queued for a cold start, while Run has it woken, and go out as fast
// as the new replicas answer. A version that a host holds is loaded by one of the host's replicas.
package dispatch
