package schema

import "fmt"

// DidYouMean ends a sentence about an unknown word with the known word next to
// it, if there is one near enough for a slip of the fingers.
func DidYouMean(word string, known []string) string {
	nearest, least := "", min(2, len(word)/2)+1
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			nearest, least = k, d
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", nearest)
}

// editDistance is the least number of bytes to insert, delete or replace to
// make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a[:i] to every b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
