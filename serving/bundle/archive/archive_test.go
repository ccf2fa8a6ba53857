package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/test/require"
)

const head = "list.json"

func parse(text []byte) (map[string]File, error) {
	var files map[string]File
	return files, json.Unmarshal(text, &files)
}

func format(files map[string]File) ([]byte, error) { return json.Marshal(files) }

func of(content string) File {
	sum := sha256.Sum256([]byte(content))
	return File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// packer writes archives as nobody should.
type packer struct {
	t   testing.TB
	buf bytes.Buffer
	zip *zip.Writer
}

func newPacker(t testing.TB) *packer {
	p := &packer{t: t}
	p.zip = zip.NewWriter(&p.buf)
	return p
}

func (p *packer) add(header zip.FileHeader, content string) *packer {
	p.t.Helper()
	w, err := p.zip.CreateHeader(&header)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	require.NoError(p.t, err)
	return p
}

func (p *packer) file(name, content string) *packer {
	return p.add(zip.FileHeader{Name: name, Method: zip.Deflate}, content)
}

func (p *packer) list(files map[string]File) *packer {
	text, _ := format(files)
	return p.file(head, string(text))
}

func (p *packer) done() []byte {
	p.t.Helper()
	require.NoError(p.t, p.zip.Close())
	return p.buf.Bytes()
}

// raw writes an entry whose sizes and checksum are the header's own.
func (p *packer) raw(header zip.FileHeader, packed string) *packer {
	p.t.Helper()
	w, err := p.zip.CreateRaw(&header)
	if err == nil {
		_, err = w.Write([]byte(packed))
	}
	require.NoError(p.t, err)
	return p
}

func open(data []byte) (*Archive, error) {
	return Open(bytes.NewReader(data), int64(len(data)), head, parse)
}

func refuse(t *testing.T, data []byte, want string) {
	t.Helper()
	a, err := open(data)
	if err == nil {
		err = a.Verify(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func deflated(t *testing.T, content string) string {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "x", Method: zip.Deflate})
	require.NoError(t, err)
	_, _ = w.Write([]byte(content))
	z.Close()
	r, err := zip.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	require.NoError(t, err)
	offset, _ := r.File[0].DataOffset()
	return string(buf.Bytes()[offset : uint64(offset)+r.File[0].CompressedSize64])
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := fstest.MapFS{}
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,3}(/[a-z0-9]{1,4}){0,2}`), strings.ToLower).Draw(t, "names")
		for _, name := range names {
			from["in/"+name+".x"] = &fstest.MapFile{
				Data: rapid.SliceOf(rapid.Byte()).Draw(t, "content"),
				Mode: rapid.SampledFrom([]fs.FileMode{0o600, 0o644, 0o755}).Draw(t, "mode"),
			}
		}
		var once, twice bytes.Buffer
		require.NoError(t, errors.Join(Write(&once, from, head, format), Write(&twice, from, head, format)))
		if !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatal("the same files made different archives")
		}
		a, err := open(once.Bytes())
		require.NoError(t, err)
		dir := filepath.Join(os.TempDir(), "topsail-archive-"+rapid.StringMatching(`[a-z]{20}`).Draw(t, "dir"))
		defer os.RemoveAll(dir)
		require.NoError(t, errors.Join(a.Verify(context.Background()), a.Unpack(context.Background(), dir)))
		for name, file := range from {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, file.Data) {
				t.Fatalf("%s came out as %q, %v", name, got, err)
			}
			info, _ := os.Stat(filepath.Join(dir, name))
			if program := info.Mode()&0o100 != 0; program != (file.Mode&0o111 != 0) {
				t.Fatalf("%s has mode %v, and had %v", name, info.Mode(), file.Mode)
			}
		}
	})
}

func TestNamesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"../x": "part", "a/../../x": "part", "a/./b": "part", "a//b": "part", "/etc/passwd": "absolute", `a\b`: "backslash",
		`..\x`: "backslash", "C:/x": "drive", "c:x": "drive", "a\x00b": "control", "a\nb": "control", "a\u0085b": "control",
		"\xff\xfe": "UTF-8", "": "0 bytes", "a/": "folder", strings.Repeat("a/", 256) + "b": "513 bytes", strings.Repeat("a", 256): "part",
	} {
		refuse(t, newPacker(t).add(zip.FileHeader{Name: name}, "").done(), want)
	}
	for _, name := range []string{"a", "a b", "größe.txt", "..a", "a..", "...", ".hidden", "ab:c"} {
		if err := checkName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestEntriesThatAreRefused(t *testing.T) {
	link := zip.FileHeader{Name: "link"}
	link.SetMode(fs.ModeSymlink | 0o777)
	device := zip.FileHeader{Name: "dev"}
	device.SetMode(fs.ModeDevice | 0o600)
	foreign := zip.FileHeader{Name: "link", ExternalAttrs: 0o120777 << 16} // of a system that has no links
	dos := zip.FileHeader{Name: "dir", ExternalAttrs: 0x10}
	for want, p := range map[string]*packer{
		"it is a link":           newPacker(t).add(link, "/etc/passwd"),
		"a device":               newPacker(t).add(device, ""),
		"only regular":           newPacker(t).add(foreign, "/etc"),
		"a folder":               newPacker(t).add(dos, ""),
		"encrypted":              newPacker(t).raw(zip.FileHeader{Name: "x", Flags: 1}, ""),
		"method 12":              newPacker(t).raw(zip.FileHeader{Name: "x", Method: 12}, ""),
		"the names of the files": newPacker(t).file("model.pkl", "a").file("model.pkl", "b"),
		"differ only in case":    newPacker(t).file("größe", "a").file("GRÖSSE", "b").file("GRÖßE", "c"),
		"the folder of":          newPacker(t).file("a", "a").file("A/b", "b"),
		"no list.json":           newPacker(t).file("a", "a"),
		"not in UTF-8":           newPacker(t).raw(zip.FileHeader{Name: "gr\xc3\xb6\xc3\x9fe"}, ""),
		"does not list":          newPacker(t).file("more", "a").list(nil),
		"does not contain":       newPacker(t).list(map[string]File{"a": of("a")}),
		"lists itself":           newPacker(t).list(map[string]File{head: of("a")}),
		"hexadecimal":            newPacker(t).file("a", "").list(map[string]File{"a": {SHA256: strings.Repeat("A", 64)}}),
		"below zero":             newPacker(t).file("a", "").list(map[string]File{"a": {SHA256: of("").SHA256, Size: -1}}),
		"has 1 bytes":            newPacker(t).file("a", "a").list(map[string]File{"a": {SHA256: of("a").SHA256, Size: 2}}),
		"has the sha256":         newPacker(t).file("a", "b").list(map[string]File{"a": of("a")}),
		"unexpected end":         newPacker(t).file(head, "{"),
		"more than 10485":        newPacker(t).add(zip.FileHeader{Name: head}, strings.Repeat(" ", MaxHead+1)),
	} {
		refuse(t, p.done(), want)
	}
}

func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 8<<20)
	refuse(t, newPacker(t).file("zeros", zeros).list(map[string]File{"zeros": of(zeros)}).done(), "1000 times its size")

	big := zip.FileHeader{Name: "big", Method: zip.Deflate, CompressedSize64: 5 << 30, UncompressedSize64: 5 << 30}
	bigger := big
	bigger.Name = "bigger"
	refuse(t, newPacker(t).raw(big, "").raw(bigger, "").done(), "together")
	big.UncompressedSize64 = 1 << 63
	refuse(t, newPacker(t).raw(big, "").done(), "more than 8589934592 bytes")

	// The directory and the list agree that it is small, and it is not.
	packed := deflated(t, zeros)
	small := zip.FileHeader{Name: "small", Method: zip.Deflate, CompressedSize64: uint64(len(packed)), UncompressedSize64: 4}
	data := newPacker(t).raw(small, packed).list(map[string]File{"small": of("\x00\x00\x00\x00")}).done()
	a, err := open(data)
	require.NoError(t, err)
	var unpacked bytes.Buffer
	if err := a.copy(t.Context(), &unpacked, "small"); err == nil || unpacked.Len() > 5 {
		t.Errorf("%d bytes were unpacked, error %v", unpacked.Len(), err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := a.Unpack(t.Context(), dir); err == nil {
		t.Error("it was unpacked")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	lying := zip.FileHeader{Name: head, Method: zip.Deflate, CompressedSize64: uint64(len(packed)), UncompressedSize64: 2,
		CRC32: crc32.ChecksumIEEE([]byte("{}"))}
	refuse(t, newPacker(t).raw(lying, packed).done(), "damaged")
	refuse(t, newPacker(t).raw(zip.FileHeader{Name: "x", CompressedSize64: 1, UncompressedSize64: 9}, "x").done(), "stored uncompressed")
}

func TestTooManyFiles(t *testing.T) {
	p := newPacker(t)
	for i := range MaxFiles + 2 {
		p.add(zip.FileHeader{Name: strconv.Itoa(i)}, "")
	}
	refuse(t, p.done(), "at most 10000 are allowed")
}

func TestEndsThatLie(t *testing.T) {
	good := newPacker(t).file("a", "a").list(map[string]File{"a": of("a")}).done()
	if a, err := open(good); err != nil || a.Verify(t.Context()) != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		if _, err := open(good[:n]); err == nil {
			t.Errorf("%d of %d bytes are an archive", n, len(good))
		}
	}
	refuse(t, []byte("this is no archive"), "it is too short")
	refuse(t, append([]byte("MZ before"), good...), "before it")
	refuse(t, append(bytes.Clone(good), "after"...), "it is truncated")
	at := len(good) - endLength
	many := bytes.Clone(good)
	binary.LittleEndian.PutUint16(many[at+10:], 0xffff)
	refuse(t, many, "or more")
	elsewhere := bytes.Clone(good)
	binary.LittleEndian.PutUint32(elsewhere[at+16:], 0xffffffff) // as an archive above 4 GiB has it
	refuse(t, elsewhere, "directory is not where")
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[at+12:], maxDirectory+1)
	refuse(t, long, "the archive's directory has")
	if _, err := Open(bytes.NewReader(nil), MaxArchive+1, head, parse); err == nil {
		t.Error("an archive of any size is opened")
	}
}

func TestDamageIsFound(t *testing.T) {
	content := strings.Repeat("weights ", 100)
	good := newPacker(t).add(zip.FileHeader{Name: "a"}, content).list(map[string]File{"a": of(content)}).done()
	at := bytes.Index(good, []byte("weights"))
	damaged := bytes.Clone(good)
	damaged[at] ^= 1
	refuse(t, damaged, "damaged")
}

func TestUnpackIntoSomethingThatIsThere(t *testing.T) {
	good := newPacker(t).file("a", "a").list(map[string]File{"a": of("a")}).done()
	a, err := open(good)
	require.NoError(t, err)
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	if err := a.Unpack(t.Context(), dir); err == nil {
		t.Error("it was unpacked over what was there")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	a, err := open(newPacker(t).file("a", "a").list(map[string]File{"a": of("a")}).done())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestWriteRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	var buf bytes.Buffer
	if err := Write(&buf, os.DirFS(dir), head, format); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("error is %v", err)
	}
}

// FuzzOpen makes the archives itself: changed bytes alone hardly ever get past an archive's end.
func FuzzOpen(f *testing.F) {
	f.Add("a/b", uint32(0o100644<<16), uint16(0), zip.Store, uint64(1), []byte("a"), []byte(`{"a/b":{"sha256":"`+of("a").SHA256+`","size":1}}`))
	f.Add("../x", uint32(0o120777<<16), uint16(1), zip.Deflate, uint64(1<<63), []byte("a"), []byte(`{}`))
	f.Fuzz(func(t *testing.T, name string, attributes uint32, flags, method uint16, size uint64, packed, list []byte) {
		header := zip.FileHeader{
			Name: name, CreatorVersion: 3 << 8, ExternalAttrs: attributes, Flags: flags, Method: method,
			UncompressedSize64: size, CompressedSize64: uint64(len(packed)), CRC32: crc32.ChecksumIEEE(packed),
		}
		if len(name) > 1<<16-1 || strings.HasSuffix(name, "/") {
			return // the packer has no such files
		}
		a, err := open(newPacker(t).raw(header, string(packed)).add(zip.FileHeader{Name: head}, string(list)).done())
		if err != nil || a.Verify(t.Context()) != nil {
			return
		}
		parent := t.TempDir()
		if err := a.Unpack(t.Context(), filepath.Join(parent, "new")); err != nil {
			t.Fatalf("it was verified, and not unpacked: %v", err)
		}
		for name, file := range a.files {
			if info, err := os.Lstat(filepath.Join(parent, "new", name)); err != nil || info.Size() != file.Size || !info.Mode().IsRegular() {
				t.Fatalf("%q: %v %v", name, info, err)
			}
		}
		if beside, _ := os.ReadDir(parent); len(beside) != 1 {
			t.Fatalf("something is beside the folder: %v", beside)
		}
	})
}
