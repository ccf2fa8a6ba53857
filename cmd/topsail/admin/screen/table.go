package screen

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table is aligned in columns with two spaces between them. Cells are cleaned.
type Table struct {
	rows [][]string
}

// NewTable begins with the names of the columns; without any there is no heading.
func NewTable(columns ...string) *Table {
	t := &Table{}
	if len(columns) > 0 {
		t.rows = append(t.rows, columns)
	}
	return t
}

// Row adds a line. An empty cell is shown as a dash, so that columns can be told apart. A single cell is a line of its
// own, as long as it is.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = Clean(cell); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// Lines are the lines of the table, without colours.
func (t *Table) Lines() []string {
	var widths []int
	for _, row := range t.rows {
		if len(row) == 1 && len(t.rows[0]) > 1 {
			continue
		}
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// Print writes the table, without colours.
func (t *Table) Print(to io.Writer) error {
	_, err := io.WriteString(to, strings.Join(append(t.Lines(), ""), "\n"))
	return err
}

// Write writes the table, with colours where the screen takes them.
func (s *Screen) Write(t *Table) error {
	var all strings.Builder
	for _, line := range t.Lines() {
		all.WriteString(s.Paint(line) + "\n")
	}
	_, err := io.WriteString(s.Out, all.String())
	return err
}
