package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// objectStore reads the objects in the packs and files of a repository and of its
// alternates. Its methods may be used by several goroutines at once.
type objectStore struct {
	folder string // objects, of the repository

	mu    sync.Mutex
	packs []*pack // nil before the first lookup; in the order of the search
	dirs  []string
	bases bases
}

// errAbsent is that a store does not have an object.
var errAbsent = errors.New("the object is missing")

// maxLooks is the number of times that an object is looked up. Another process may have packed
// the object meanwhile, or replaced its pack. A folder that changes while it is listed may show
// neither the old pack nor the new one.
const maxLooks = 4

// read returns an object of at most most bytes. The error is errAbsent if it does not
// exist.
func (s *objectStore) read(id Hash, most int64) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for look := range maxLooks {
		if look > 0 || s.dirs == nil {
			if err := s.list(); err != nil {
				return Object{}, err
			}
		}
		o, err := s.lookUp(id, most)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return o, err
		}
	}
	return Object{}, errAbsent
}

// lookUp looks an object up once. The pack that has it is searched first for the next one,
// which is mostly there too.
func (s *objectStore) lookUp(id Hash, most int64) (Object, error) {
	for i, p := range s.packs {
		offset, found, err := p.find(id)
		if found && err == nil {
			copy(s.packs[1:], s.packs[:i])
			s.packs[0] = p
			var o Object
			if o, err = p.read(offset, most, &s.bases); err == nil {
				return o, nil
			}
		}
		// another process removes only objects that it has put elsewhere
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Object{}, err
		}
	}
	name := id.String()
	for _, dir := range s.dirs {
		data, err := regular.ReadFile(filepath.Join(dir, name[:2], name[2:]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Object{}, err
		}
		return loose(data, most)
	}
	return Object{}, fs.ErrNotExist
}

// list finds the packs, the newest first because most first reads are in it, and the object
// folders of the repository and its alternates.
func (s *objectStore) list() error {
	known := map[string]*pack{}
	for _, p := range s.packs {
		known[p.path] = p
	}
	s.packs, s.dirs = nil, nil
	if err := s.addDir(s.folder, 0); err != nil {
		return err
	}
	times := map[string]int64{}
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(filepath.Join(dir, "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			name, isIndex := strings.CutSuffix(e.Name(), ".idx")
			if !isIndex {
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			p := filepath.Join(dir, "pack", name)
			times[p] = info.ModTime().UnixNano()
			if known[p] == nil {
				known[p] = &pack{path: p}
			}
			s.packs = append(s.packs, known[p])
			delete(known, p)
		}
	}
	slices.SortFunc(s.packs, func(a, b *pack) int {
		if c := times[b.path] - times[a.path]; c != 0 {
			return int(max(-1, min(c, 1)))
		}
		return strings.Compare(a.path, b.path)
	})
	var errs []error
	for _, p := range known {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// addDir adds an object folder, and the folders in its info/alternates. As git does, it follows
// them five levels deep, and ignores missing ones.
func (s *objectStore) addDir(dir string, depth int) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || slices.Contains(s.dirs, dir) {
		return nil
	}
	s.dirs = append(s.dirs, dir)
	data, err := regular.ReadFile(filepath.Join(dir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && depth == 5 {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		line = filepath.FromSlash(line)
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		if err := s.addDir(filepath.Clean(line), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// loose decodes the file of a loose object.
func loose(data []byte, most int64) (o Object, err error) {
	err = inflate(bytes.NewReader(data), func(z io.Reader) error {
		in := bufio.NewReader(z)
		header, err := in.ReadString(0)
		if err != nil {
			return fmt.Errorf("its header: %w", err)
		}
		name, length, _ := strings.Cut(strings.TrimSuffix(header, "\x00"), " ")
		kind := slices.Index(kinds[:], name)
		size, err := strconv.ParseInt(length, 10, 64)
		if kind <= 0 || err != nil {
			return fmt.Errorf("its header is %q", header)
		}
		if size > most {
			return ErrTooLarge
		}
		o.Kind = Kind(kind)
		o.Data, err = exactly(in, size)
		return err
	})
	return o, err
}

// has reports whether the store has an object. Damaged packs are ignored.
func (s *objectStore) has(id Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for look := range 2 {
		if look > 0 || s.dirs == nil {
			if err := s.list(); err != nil {
				return false
			}
		}
		if slices.ContainsFunc(s.packs, func(p *pack) bool {
			_, found,
				err := p.find(id)
			return err == nil && found
		}) || s.isLoose(id) {
			return true
		}
	}
	return false
}

// absent returns the given objects, each listed once, that the store does not have.
func (s *objectStore) absent(ids []Hash) ([]Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for look := 0; look < maxLooks && len(ids) > 0; look++ {
		if look > 0 || s.dirs == nil {
			if err := s.list(); err != nil {
				return nil, err
			}
		}
		left, err := s.unlisted(ids)
		if err == nil && (look > 0 || len(left) == 0) {
			return left, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for objects of %s: %w", filepath.Dir(s.folder), err)
		}
	}
	return ids, nil
}

// unlisted returns the given objects that are not in the listed packs and folders.
func (s *objectStore) unlisted(ids []Hash) ([]Hash, error) {
	var left []Hash
	for _, id := range ids {
		found, err := s.holds(id)
		if err != nil {
			return nil, err
		}
		if !found {
			left = append(left, id)
		}
	}
	return left, nil
}

// holds reports whether an object is in the listed packs and folders.
func (s *objectStore) holds(id Hash) (bool, error) {
	for _, p := range s.packs {
		_, found, err := p.find(id)
		if err == nil && found {
			return true, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return s.isLoose(id), nil
}

// isLoose reports whether an object has a file of its own in the listed folders.
func (s *objectStore) isLoose(id Hash) bool {
	name := id.String()
	return slices.ContainsFunc(s.dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name[:2], name[2:]))
		return err == nil
	})
}

// beginning returns the objects whose ids begin with the digits.
func (s *objectStore) beginning(digits string) (map[Hash]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.list(); err != nil {
		return nil, err
	}
	ids := map[Hash]bool{}
	for _, p := range s.packs {
		if err := p.beginning(digits, ids); err != nil {
			return nil, err
		}
	}
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(filepath.Join(dir, digits[:2]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if id := digits[:2] + e.Name(); strings.HasPrefix(id, digits) && plumbing.IsHash(id) {
				ids[plumbing.NewHash(id)] = true
			}
		}
	}
	return ids, nil
}

func (s *objectStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.packs {
		errs = append(errs, p.close())
	}
	s.packs, s.bases = nil, bases{}
	return errors.Join(errs...)
}
