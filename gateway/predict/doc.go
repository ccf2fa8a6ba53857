// Package predict answers queries. Predictor.Predict is the whole path of one:
//
//	begin   find the app, let its policy select model versions
//	ask     per version: the cache, else join an equal question, else a replica
//	await   until the policy is certain, at the latest just before the deadline
//	answer  the output, or the default and why
//
// Nothing on it takes a lock for long or waits for anything but an answer. A
// question goes on when no query waits for it any more, and its output is cached.
//
// Questions of a version without a ready replica are held in its cold-start queue, while Run has
// it woken, and go out as fast as the new replicas answer.
package predict
