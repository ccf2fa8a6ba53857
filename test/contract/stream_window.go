package contract

import (
	"slices"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// window has several polls in flight at once, and commits their records in any order. Each comes once.
func (s *streams) window() {
	s.Ordered = false // by what is committed here
	s.write(120)
	member, _ := s.join("a")
	var records []serving.StreamRecord
	seen := map[string]bool{}
	for len(records) < s.written {
		for _, r := range s.poll(member, 25) {
			if seen[string(r.Value)] {
				s.Fatalf("record %s comes again while it is in flight", r.Value)
			}
			seen[string(r.Value)] = true
			records = append(records, r)
		}
	}
	slices.Reverse(records)
	for part := range slices.Chunk(records, 17) {
		if done := s.persist(s.Context(), member, part, s.echo(part)); done != len(part) {
			s.Fatalf("%d of %d records are lost", len(part)-done, len(part))
		}
	}
	s.read(s.Out[0], s.written)
	s.results()
	s.write(30)
	s.finish(member)
}

// beyond has a member commit all but some records, and leave or die. The next one gets these, and
// no other.
func (s *streams) beyond() {
	s.Ordered = false // by what is committed here
	s.write(400)
	open := map[string]bool{}
	for i, name := range []string{"a", "b", "a"} {
		member, wire, records := s.collect(name, s.written-s.results())
		var late, done []serving.StreamRecord
		for j, r := range records {
			number, err := strconv.Atoi(string(r.Value))
			require.NoError(s, err)
			if i > 0 && !open[string(r.Value)] {
				s.Errorf("record %s comes again", r.Value)
			}
			if number%37 == 0 || j%50 == 0 {
				late = append(late, r)
			} else {
				done = append(done, r)
			}
		}
		for part := range slices.Chunk(done, 64) {
			if n := s.persist(s.Context(), member, part, s.echo(part)); n != len(part) {
				s.Fatalf("%d of %d records are lost", len(part)-n, len(part))
			}
		}
		open = map[string]bool{}
		for _, r := range late {
			open[string(r.Value)] = true
		}
		s.read(s.Out[0], s.written-len(late))
		s.awaitLag(member, int64(len(late)))
		if i == 0 {
			wire.Cut()
		}
		s.close(member)
	}
	member, _ := s.join("b")
	s.finish(member)
}

// collect polls and commits nothing until it has n records.
func (s *streams) collect(name string, n int) (member StreamConsumer, wire *Wire, records []serving.StreamRecord) {
	s.Helper()
	member, wire = s.join(name)
	for len(records) < n {
		records = append(records, s.poll(member, n-len(records))...)
	}
	return member, wire, records
}
