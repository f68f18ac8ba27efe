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
)

// maxObject is the size of the largest object that is read: objects may come from anywhere.
const maxObject = 1 << 30

// ErrTooLarge is wrapped by the error for an object of more bytes than may be read.
var ErrTooLarge = errors.New("it is too large")

// Object reads an object, and verifies its id. The error is a *MissingError where the
// repository does not have it.
func (r *Repository) Object(id Hash) (Object, error) { return r.objectWithin(id, maxObject) }

func (r *Repository) objectWithin(id Hash, most int64) (Object, error) {
	o, err := r.present(id, most)
	if r.Missing == nil || !errors.As(err, new(*MissingError)) {
		return o, err
	}
	if err := r.Missing(id); err != nil {
		return Object{}, err
	}
	return r.present(id, most)
}

// present reads an object without calling Missing.
func (r *Repository) present(id Hash, most int64) (Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, err := r.object(id, most)
	var missing *MissingError
	if errors.As(err, &missing) {
		return Object{}, err
	}
	if err != nil {
		return Object{}, fmt.Errorf("reading object %s of %s: %w", id, r.dir, err)
	}
	if ID(o.Kind, o.Data) != id {
		return Object{}, fmt.Errorf("object %s of %s is corrupt", id, r.dir)
	}
	return o, nil
}

// mostLooks is how often an object is looked up: another process may have packed it
// meanwhile, or replaced its pack, and a folder that changes while it is listed may show
// neither the old pack nor the new one.
const mostLooks = 4

func (r *Repository) object(id Hash, most int64) (Object, error) {
	for look := range mostLooks {
		if look > 0 || r.dirs == nil {
			if err := r.list(); err != nil {
				return Object{}, err
			}
		}
		o, err := r.lookUp(id, most)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return o, err
		}
	}
	return Object{}, r.missing(id)
}

// lookUp looks an object up once. The pack that has it is searched first for the next one,
// which is mostly there too.
func (r *Repository) lookUp(id Hash, most int64) (Object, error) {
	for i, p := range r.packs {
		offset, found, err := p.find(id)
		if err != nil {
			return Object{}, err
		}
		if found {
			copy(r.packs[1:], r.packs[:i])
			r.packs[0] = p
			return p.read(offset, most, &r.bases)
		}
	}
	name := id.String()
	for _, dir := range r.dirs {
		data, err := os.ReadFile(filepath.Join(dir, name[:2], name[2:]))
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

// list finds the packs, the newest first because it has most of what is read first, and the
// object folders of the repository and its alternates.
func (r *Repository) list() error {
	known := map[string]*pack{}
	for _, p := range r.packs {
		known[p.path] = p
	}
	r.packs, r.dirs = nil, nil
	if err := r.addDir(filepath.Join(r.dir, "objects"), 0); err != nil {
		return err
	}
	times := map[string]int64{}
	for _, dir := range r.dirs {
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
			r.packs = append(r.packs, known[p])
			delete(known, p)
		}
	}
	slices.SortFunc(r.packs, func(a, b *pack) int {
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

// addDir adds an object folder, and those in its info/alternates. As git does, it follows
// them five levels deep, and ignores missing ones.
func (r *Repository) addDir(dir string, depth int) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || slices.Contains(r.dirs, dir) {
		return nil
	}
	r.dirs = append(r.dirs, dir)
	data, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
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
		if err := r.addDir(filepath.Clean(line), depth+1); err != nil {
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

// Has reports whether the repository has an object. It does not call Missing.
func (r *Repository) Has(id Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for look := range 2 {
		if look > 0 || r.dirs == nil {
			if err := r.list(); err != nil {
				return false
			}
		}
		if r.finds(id) {
			return true
		}
	}
	return false
}

func (r *Repository) finds(id Hash) bool {
	for _, p := range r.packs {
		if _, found, err := p.find(id); err == nil && found {
			return true
		}
	}
	name := id.String()
	return slices.ContainsFunc(r.dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name[:2], name[2:]))
		return err == nil
	})
}
