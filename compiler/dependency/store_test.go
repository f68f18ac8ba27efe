package dependency

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/internal/regular"
)

func putting(t testing.TB, s *Store, text string) Digest {
	t.Helper()
	d, err := s.Put([]byte(text))
	must(t, err)
	return d
}

func wantText(t *testing.T, s *Store, d Digest, want string) {
	t.Helper()
	got, err := s.Get(d)
	if err != nil || string(got) != want {
		t.Errorf("%.20q, %v, want %.20q", got, err, want)
	}
}

// files lists the content of a folder, sorted.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	return out
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := OpenStore("", dir)
	for _, text := range []string{"", "text", strings.Repeat("x", 1<<20)} {
		d := DigestOf([]byte(text))
		var missing *MissingError
		if _, err := s.Get(d); !errors.As(err, &missing) || missing.Digest != d {
			t.Error(err)
		}
		for range 2 {
			if got := putting(t, s, text); got != d {
				t.Errorf("%s, want %s", got, d)
			}
		}
		wantText(t, s, d, text)
	}
	hex := "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1" // of "text", by sha256sum
	if got := files(t, dir); len(got) != 3 || !slices.Contains(got, "sha256/98/"+hex) {
		t.Errorf("%q", got)
	}
}

func TestDigest(t *testing.T) {
	valid := "sha256:" + strings.Repeat("0f", 32)
	for text, want := range map[string]bool{
		valid: true, "": false, "sha256:": false, valid + "0": false, strings.ToUpper(valid): false,
		"sha512:" + valid[7:]: false, "sha256:../../" + valid[13:]: false, valid[7:]: false,
	} {
		if Digest(text).Valid() != want {
			t.Errorf("%q: %t", text, !want)
		}
		s := OpenStore(t.TempDir(), t.TempDir())
		if _, err := s.Get(Digest(text)); err == nil {
			t.Errorf("%q is there", text)
		}
	}
}

func TestVendorComesFirst(t *testing.T) {
	vendor, machine := t.TempDir(), t.TempDir()
	d := putting(t, OpenStore("", vendor), "vendored")
	s := OpenStore(vendor, machine)
	wantText(t, s, d, "vendored")
	other := putting(t, s, "other")
	wantText(t, s, other, "other")
	if got := files(t, vendor); len(got) != 1 {
		t.Errorf("Put wrote to the vendor folder: %q", got)
	}
	// Damaged content in one folder is an error, and not found in the other.
	putting(t, s, "vendored")
	must(t, os.WriteFile(d.path(vendor), []byte("tampered"), 0o666))
	var damaged *DamagedError
	if _, err := s.Get(d); !errors.As(err, &damaged) || damaged.Path != d.path(vendor) || damaged.Actual != DigestOf([]byte("tampered")) {
		t.Error(err)
	}
}

func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(name string) error{
		"changed":   func(name string) error { return os.WriteFile(name, []byte("tExt"), 0o666) },
		"cut":       func(name string) error { return os.Truncate(name, 2) },
		"longer":    func(name string) error { return os.WriteFile(name, []byte("text "), 0o666) },
		"too large": func(name string) error { return os.Truncate(name, MaxSize+1) },
		"a folder":  func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o777)) },
		"a pipe":    func(name string) error { return errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := OpenStore("", t.TempDir())
			d := putting(t, s, "text")
			file := d.path(s.machine)
			must(t, damage(file))
			_, err := s.Get(d)
			if bad := (*DamagedError)(nil); !errors.As(err, &bad) || bad.Path != file || !strings.Contains(err.Error(), file) {
				t.Fatal(err)
			}
			if name == "a folder" {
				return // Put cannot replace it, and returns an error
			}
			putting(t, s, "text")
			wantText(t, s, d, "text")
		})
	}
}

func TestPutWhereNothingCanBe(t *testing.T) {
	if _, err := OpenStore(t.TempDir(), "").Put(nil); err == nil || !strings.Contains(err.Error(), EnvDir) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o666))
	_, err := OpenStore("", file).Put([]byte("text"))
	if err == nil || !strings.Contains(err.Error(), EnvDir) || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}

// A file in place of a folder has no content, and does not hide content of the other store.
func TestFileInPlaceOfFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o666))
	s := OpenStore(file, t.TempDir())
	wantText(t, s, putting(t, s, "text"), "text")
	var missing *MissingError
	if _, err := OpenStore(file, file).Get(DigestOf([]byte("text"))); !errors.As(err, &missing) {
		t.Error(err)
	}
}

// A folder that its owner has made read-only is read, and writing to it is an
// error that names it.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root may write everywhere: only reading is tested")
	}
	dir := t.TempDir()
	s := OpenStore("", dir)
	d := putting(t, s, "text")
	must(t, os.Chmod(filepath.Dir(d.path(dir)), 0o555), os.Chmod(filepath.Join(dir, algorithm), 0o555))
	t.Cleanup(func() {
		must(t, os.Chmod(filepath.Join(dir, algorithm), 0o777), os.Chmod(filepath.Dir(d.path(dir)), 0o777))
	})
	wantText(t, s, d, "text")
	putting(t, s, "text") // it exists already
	if _, err := s.Put([]byte("other")); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), dir)) {
		t.Error(err)
	}
}

func TestMachineDir(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv(EnvDir, "")
	cache, err := os.UserCacheDir()
	must(t, err)
	if got, err := MachineDir(); err != nil || got != filepath.Join(cache, "kalypso-store") {
		t.Errorf("%s, %v", got, err)
	}
	t.Setenv(EnvDir, "/elsewhere")
	if got, err := MachineDir(); err != nil || got != filepath.FromSlash("/elsewhere") {
		t.Errorf("%s, %v", got, err)
	}
}

// Writers of the same content do not disturb each other or readers. Readers find all of it
// or nothing.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	var work sync.WaitGroup
	for i := range 8 {
		s := OpenStore("", dir)
		work.Go(func() {
			for j := range 20 {
				data := bytes.Repeat([]byte(fmt.Sprint(j)), 10_000)
				d := DigestOf(data)
				if i%2 == 0 {
					if _, err := s.Put(data); err != nil {
						t.Error(err)
					}
				}
				if got, err := s.Get(d); err == nil && !bytes.Equal(got, data) || err != nil && !errors.As(err, new(*MissingError)) {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if got := files(t, dir); len(got) != 20 {
		t.Errorf("%d files: %q", len(got), got)
	}
}

func TestCopy(t *testing.T) {
	vendor, machine := filepath.Join(t.TempDir(), "vendor"), t.TempDir()
	s := OpenStore(vendor, machine)
	one, two, three := putting(t, s, "one"), putting(t, s, "two"), putting(t, s, "three")
	copying := func(want CopyChanges, digests ...Digest) {
		t.Helper()
		if got, err := s.Copy(digests, vendor); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	copying(CopyChanges{})
	copying(CopyChanges{Added: 2}, one, two, one)
	copying(CopyChanges{}, two, one)

	foreign := []string{"README.md", "sha256/README", "sha256/zz/" + string(one[7:]), "sha256/00/" + string(one[7:]), "sha256/" + string(one[7:9]) + "/x"}
	for _, name := range foreign {
		name = filepath.Join(vendor, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, nil, 0o666))
	}
	must(t, os.WriteFile(filepath.Join(filepath.Dir(two.path(vendor)), regular.TempPrefix+"1"), nil, 0o666))
	copying(CopyChanges{Added: 1, Removed: 3}, three)
	want := slices.Sorted(slices.Values(append(foreign, "sha256/"+string(three[7:9])+"/"+string(three[7:]))))
	if got := slices.Sorted(slices.Values(files(t, vendor))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	// Vendored content is enough, and missing content removes nothing.
	must(t, os.RemoveAll(machine))
	copying(CopyChanges{}, three)
	if _, err := s.Copy([]Digest{one}, vendor); !errors.As(err, new(*MissingError)) {
		t.Error(err)
	}
	wantText(t, OpenStore(vendor, ""), three, "three")
}
