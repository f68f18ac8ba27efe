package dependency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// maxSize is the maximal size of the file, in bytes: about 30,000 sources.
const maxSize = 16 << 20

// hintRelock is the hint for all errors in the file.
const hintRelock = "restore kalypso.lock from git, or remove the file and run `kalypso lock`, " +
	"which pins everything anew"

// ReadLock reads the lock of the platform at root. A missing file is an empty lock. Errors in
// the file are diagnostics with the code BadLock, positioned in it, in the file's order;
// the lock then has the valid entries. The error is for an unreadable file.
func ReadLock(root string) (*Lock, []diag.Diagnostic, error) {
	name := filepath.Join(root, FileName)
	info, err := os.Stat(name) // opening a pipe would block
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{}, nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := regular.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, nil, err
	}
	l, ds := parse(data)
	return l, ds, nil
}

// UnreadableLock returns the diagnostics that are about the file. Callers that find any must
// not write it: its pins would be lost.
func UnreadableLock(ds []diag.Diagnostic) []diag.Diagnostic {
	return slices.DeleteFunc(slices.Clone(ds),
		func(d diag.Diagnostic) bool { return d.Code != diag.BadLock })
}

// parse reads the file's content.
func parse(data []byte) (*Lock, []diag.Diagnostic) {
	r := &reader{data: data}
	switch line, found := conflict(data); {
	case len(data) > maxSize:
		r.report(0, fmt.Sprintf("kalypso.lock has more than %d bytes", maxSize), hintRelock)
	case found:
		r.report(line, "kalypso.lock has a merge conflict", "take either side of the file, such as "+
			"with `git checkout --ours kalypso.lock`, and run `kalypso lock`")
	default:
		r.file()
	}
	return NewLock(r.entries), r.diagnostics
}

// conflict finds the first conflict marker of git.
func conflict(data []byte) (offset int, found bool) {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("<<<<<<< ")) || bytes.HasPrefix(line, []byte(">>>>>>> ")) {
			return offset, true
		}
		offset += len(line)
	}
	return 0, false
}

// reader reads the file, and continues after errors.
type reader struct {
	data        []byte
	entries     []Entry
	diagnostics []diag.Diagnostic
}

// maxReports is the maximal number of diagnostics: a file with more is not a lock.
const maxReports = 20

// report adds a diagnostic at an offset.
func (r *reader) report(offset int, message, hint string) {
	if len(r.diagnostics) >= maxReports {
		return
	}
	before := r.data[:min(offset, len(r.data))]
	at := model.Position{
		File:   FileName,
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
	}
	r.diagnostics = append(r.diagnostics, diag.New(diag.BadLock, message).In(at, "").Hinting(hint))
}

// file reads the whole file.
func (r *reader) file() {
	root, err := parseJSON(r.data)
	if err != nil {
		r.report(err.offset, "kalypso.lock is not valid JSON: "+err.problem, hintRelock)
		return
	}
	fields, ok := r.object(root, "kalypso.lock")
	if !ok || !r.version(root, fields) {
		return
	}
	for _, name := range root.names {
		switch name.text {
		case "apiVersion", "kind":
		case "sources":
			r.sources(fields["sources"])
		default:
			r.report(name.offset, fmt.Sprintf("kalypso.lock has no field %q", name.text), hintRelock)
		}
	}
	if _, ok := fields["sources"]; !ok {
		r.report(root.offset, "kalypso.lock has no sources", hintRelock)
	}
}

// object returns the fields of an object, and reports other values and duplicate fields.
func (r *reader) object(v value, what string) (map[string]value, bool) {
	if v.kind != '{' {
		r.report(v.offset, what+" is not an object", hintRelock)
		return nil, false
	}
	fields := map[string]value{}
	for i, name := range v.names {
		if _, twice := fields[name.text]; twice {
			r.report(name.offset, fmt.Sprintf("the field %q is there twice", name.text), hintRelock)
			return nil, false
		}
		fields[name.text] = v.values[i]
	}
	return fields, true
}

// version reports whether the file is a lock that this kalypso reads.
func (r *reader) version(root value, fields map[string]value) bool {
	at := root.offset
	version, ok := fields["apiVersion"]
	if ok {
		at = version.offset
	}
	known := version.text == apiVersion || version.text == older
	switch k := fields["kind"]; {
	case known && k.text == kind:
		return true
	case known:
		r.report(max(at, k.offset), fmt.Sprintf("kalypso.lock is not of the kind %q", kind), hintRelock)
	case strings.HasPrefix(version.text, "kalypso.io/"):
		r.report(at, fmt.Sprintf("kalypso.lock has the apiVersion %q, and this kalypso reads %q",
			version.text, apiVersion),
			"a newer kalypso wrote it: use that one; or "+hintRelock)
	default:
		r.report(at, fmt.Sprintf("kalypso.lock does not have the apiVersion %q", apiVersion), hintRelock)
	}
	return false
}

// sources reads the list of entries.
func (r *reader) sources(list value) {
	if list.kind != '[' {
		r.report(list.offset, "sources is not a list", hintRelock)
		return
	}
	first := map[Source]bool{}
	for _, v := range list.values {
		if len(r.diagnostics) >= maxReports {
			return
		}
		e, ok := r.entry(v)
		if !ok {
			continue
		}
		if first[e.Source] {
			r.report(v.offset, "kalypso.lock has "+e.String()+" twice",
				"remove one of the two and run `kalypso lock`")
			continue
		}
		first[e.Source] = true
		r.entries = append(r.entries, e)
	}
}
