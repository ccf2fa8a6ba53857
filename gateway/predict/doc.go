// Package predict answers queries. Predictor.Predict is the whole path of one:
//
//	begin   find the app, and have its planner say which versions to ask
//	await   step until there is a verdict, at the latest just before the deadline
//	step    make the attempts that are due, and look at what has come
//	attempt the cache, else join an equal question, else a replica
//	answer  the output, or the default and why
//
// The planner is what an app's policy chooses, or the app's stages.
//
// Nothing on it takes a lock for long or waits for anything but an answer. A
// question goes on when no query waits for it any more, and its output is cached.
//
// Questions of a version without a ready replica are held in its cold-start queue, while Run has
// it woken, and go out as fast as the new replicas answer.
package predict
