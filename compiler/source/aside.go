package source

import (
	"path"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Links returns links that are not part of the platform but that would make CUE fail, by
// their paths from the root. Some lead nowhere: an editor makes such a link for every file
// that it has open. The others lead to folders and have the name of a data file.
func (p *Platform) Links() []string { return p.links }

// maxLinked is the largest size, in bytes, of a data file to which a link may lead.
const maxLinked = 16 << 20

// lookAside checks entries that are not regular files and not part of the package. CUE
// reads them nevertheless if their names end like a data file's.
func (p *Platform) lookAside(rel string) []diag.Diagnostic {
	info, err := p.files.Stat(rel)
	if path.Ext(rel) != "" && (err != nil || info.IsDir()) {
		p.links = append(p.links, rel)
	}
	if err != nil || info.IsDir() || path.Ext(rel) == "" || info.Mode().IsRegular() &&
		info.Size() <= maxLinked {
		return nil
	}
	p.bar(rel)
	is := "a link to a file of more than 16 MiB"
	if !info.Mode().IsRegular() {
		is = "a pipe, a socket or a device"
	}
	return []diag.Diagnostic{diag.New(diag.Compile, path.Base(rel)+" is "+is+", and CUE reads every "+
		"data file of a folder").
		In(model.Position{File: rel, Line: 1, Column: 1}, "").
		Hinting("remove it, or put a regular file in its place")}
}

// NoFileError reports that an entry with the name of a CUE file is not a file.
type NoFileError struct {
	Name  string // from the platform's root
	there bool   // whether something is there that is not a file
}

// Error describes the entry.
func (e *NoFileError) Error() string { return e.Diagnostic().Message }

// Diagnostic reports it.
func (e *NoFileError) Diagnostic() diag.Diagnostic {
	is := "a pipe, a socket or a device"
	if !e.there {
		is = "a link that leads nowhere"
	}
	return diag.New(diag.Compile, path.Base(e.Name)+" is "+is).
		In(model.Position{File: e.Name, Line: 1, Column: 1}, "").
		Hinting("remove it, or put a regular file in its place")
}

// lookNoFile checks entries that have the name of a CUE file and are not files. CUE ignores a
// folder or a link to one.
func (p *Platform) lookNoFile(rel string) []diag.Diagnostic {
	info, err := p.files.Stat(rel)
	if err == nil && info.IsDir() {
		return nil
	}
	p.bar(rel)
	return []diag.Diagnostic{(&NoFileError{rel, err == nil}).Diagnostic()}
}

// bar keeps CUE from loading the package of a file.
func (p *Platform) bar(rel string) {
	dir := path.Dir(rel)
	environment, deeper := environmentOf(dir)
	switch {
	case deeper != "": // a helper package of the environment, which scan looks for in others
	case environment != "" && isSource(path.Base(rel)):
		p.Folders = append(p.Folders, environment)
	case dir == "." && isSource(path.Base(rel)):
		p.hasBase = true
	}
	p.hidden[environment], p.barred[environment] = true, true
}
