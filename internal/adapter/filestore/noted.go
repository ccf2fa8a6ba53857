package filestore

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// notedFile, beside the file, says when the last backup was made, for those who cannot open the
// file while it is in use: the time, the name and their checksum. It is made again at each start.
const notedFile = "last-backup"

// backupEntries is how many entries about backups are looked through for the last one made.
const backupEntries = 20

// noteBackup writes the last backup of the audit log beside the file, or that there is none. It
// is for people: where it fails, the next start or backup writes it.
func (s *Store) noteBackup() {
	entries, err := s.AuditLog(context.Background(), serving.AuditQuery{Kind: "backup", Limit: backupEntries})
	if err != nil {
		return
	}
	text := ""
	for _, e := range entries {
		if e.Action == "backup" {
			text = e.At.UTC().Format(time.RFC3339) + " " + e.Name
			break
		}
	}
	path := filepath.Join(filepath.Dir(s.path), notedFile)
	err = os.WriteFile(path+".part", fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text))), 0o600)
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil && os.Rename(path, path+".damaged") == nil { // what is there is no file
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		s.log.Debug("when the last backup was made is not noted", "file", path, "err", err)
	}
}

// Noted is the last backup of a file that a process has open, as an audit log.
type Noted string

// AuditLog is Store.AuditLog, with the last backup alone.
func (path Noted) AuditLog(context.Context, serving.AuditQuery) ([]serving.AuditEntry, error) {
	file := filepath.Join(filepath.Dir(string(path)), notedFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	line, ended := strings.CutSuffix(string(data), "\n")
	at := strings.LastIndexByte(line, ' ')
	if !ended || at < 0 || line[at+1:] != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(line[:at]))) {
		return nil, fmt.Errorf("%s is damaged; the next start or backup makes it again", file)
	}
	if at == 0 {
		return nil, nil
	}
	made, name, _ := strings.Cut(line[:at], " ")
	when, err := time.Parse(time.RFC3339, made)
	return []serving.AuditEntry{{At: when, Action: "backup", Kind: "backup", Name: name}}, err
}
