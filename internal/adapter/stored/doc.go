// Package stored has the stored forms of audit entries and of replies, which the file
// of local mode and Redis share: so both bound them alike, and keep and find the same.
package stored
