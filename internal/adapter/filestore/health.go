package filestore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/serving"
)

// health is what is wrong with the file. Its methods may be called concurrently.
type health struct {
	mu     sync.Mutex // guards the following
	found  []string   // damage, since the file was opened
	unable error      // why the last write failed; nil: it did not
}

// maxFound bounds what is remembered of damage.
const maxFound = 20

// Condition is what is wrong with the data directory while it serves, for operators, or nil:
// what was damaged when it was opened or has been since, and why nothing can be written.
func (s *Store) Condition() error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	var damage error
	if len(s.health.found) > 0 {
		damage = fmt.Errorf("%s was damaged: %s; to go back to a state before, restore a backup (topsail restore)", s.path, strings.Join(s.health.found, "; "))
	}
	return errors.Join(s.health.unable, damage)
}

// Writable says whether the last write succeeded.
func (s *Store) Writable() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.unable == nil
}

// Damaged says whether damage was found since the file was opened.
func (s *Store) Damaged() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return len(s.health.found) > 0
}

// noteDamage keeps what is damaged, once.
func (s *Store) noteDamage(what string) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if slices.Contains(s.health.found, what) {
		return
	}
	if len(s.health.found) < maxFound {
		s.health.found = append(s.health.found, what)
	}
	s.log.Error("the data directory is damaged", "file", s.path, "damage", what)
}

// noteWrite takes in how a write went, and says once when that changes.
func (s *Store) noteWrite(err error) error {
	reason, system := errors.AsType[syscall.Errno](err)
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	switch {
	case system:
		err = &serving.Unwritable{Reason: reason, Remedy: remedy(reason)}
		if s.health.unable == nil {
			s.log.Error("the data directory cannot be written: changes and feedback are refused until it can", "file", s.path, "err", reason)
		}
		s.health.unable = fmt.Errorf("%s cannot be written: %w; changes and feedback are refused until it can", s.path, err)
	case err == nil && s.health.unable != nil:
		s.log.Info("the data directory can be written again", "file", s.path)
		s.health.unable = nil
	}
	return err
}

// remedy is what to do about an error of the disk.
func remedy(reason syscall.Errno) string {
	switch reason {
	case syscall.ENOSPC, syscall.EDQUOT:
		return "make room on the disk of the data directory"
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return "let topsail's user write the data directory"
	}
	return "look at the disk of the data directory"
}

func (s *Store) view(look func(*tx) error) error {
	return s.db.View(func(raw *bbolt.Tx) error { return look(s.tx(raw)) })
}

func (s *Store) update(change func(*tx) error) error {
	return s.noteWrite(s.db.Update(func(raw *bbolt.Tx) error {
		t := s.tx(raw)
		if err := change(t); err != nil {
			return err
		}
		return t.putTotals()
	}))
}

func (s *Store) tx(raw *bbolt.Tx) *tx {
	return newTx(raw, func(path string, key []byte) { s.noteDamage(fmt.Sprintf("%q in %q", key, path)) })
}
