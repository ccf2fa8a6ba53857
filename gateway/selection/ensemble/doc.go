// Package ensemble has the policies that ask several models for one query and make one
// answer of what they say: votes (Vote, and Exp4 for labels), averages (Mean, Median,
// Stacking, and Exp4 for numbers), the most confident one (Best), and a correction of
// the models' outputs that is learned from each user's feedback (Logistic).
//
// They have in common which models they ask: every linked model, or those that the policy
// names, at most as many as it says and the most important first. Models without a
// replica are left out while any other has one. An output of a type that the policy
// does not take counts as a failure of its model.
package ensemble
