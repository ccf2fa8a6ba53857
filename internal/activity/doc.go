// Package activity says, interval by interval, what the apps, model versions and stages of a process did, as
// its metrics count it. What rested is not in it.
package activity
