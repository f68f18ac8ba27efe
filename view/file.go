package view

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
)

// FileOptions choose the contents of a file of pages.
type FileOptions struct {
	// Full writes a page for each assignment. Otherwise equal assignments share a page, and
	// at most maxDetails groups of equal assignments have one.
	Full bool
}

// maxDetails is the maximum number of pages of assignments in a file, unless the file must be
// full. A file with more pages is over 20 MB, and a browser opens 20 MB without a wait.
const maxDetails = 4000

// WriteFile writes all pages of a source as one HTML file, which needs no server and no
// network. It can be read without scripts, unless it is so large that the pages of
// workloads, clusters and assignments are packed.
func WriteFile(ctx context.Context, w io.Writer, s Source, o FileOptions) error {
	f := &file{ctx: ctx, source: s, has: map[string]bool{}, pageOf: map[string]string{},
		equal: map[string]int{}}
	f.renderer = newRenderer(links{page: f.address, assignment: f.assignment, oneFile: true})
	about, err := s.PageData(ctx)
	if err != nil {
		return err
	}
	if err := f.collect(about, o.Full); err != nil {
		return err
	}
	packed, err := f.pack()
	if err != nil {
		return err
	}
	index, err := f.index()
	if err != nil {
		return err
	}
	style, script := style(), asset("file.js")
	head := fileHead{PageData: about, Style: template.CSS(style), Script: template.JS(script),
		Packed: packed, Index: index, Policy: fmt.Sprintf(
			"default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
			hashOf(style), hashOf(script))}
	out := bufio.NewWriterSize(w, 1<<16)
	if err := f.renderer.templates.ExecuteTemplate(out, "file-head", head); err != nil {
		return err
	}
	for _, p := range f.first {
		if err := f.section(out, p); err != nil {
			return err
		}
	}
	if err := f.renderer.templates.ExecuteTemplate(out, "file-foot", head); err != nil {
		return err
	}
	return out.Flush()
}

type fileHead struct {
	*PageData
	Style  template.CSS
	Script template.JS
	Policy string
	Packed *packedPages
	Index  template.HTML
}

// file is one while it is written.
type file struct {
	ctx      context.Context
	source   Source
	renderer *renderer
	first    []string          // the paths of pages that are never packed, in their order
	others   []string          // the paths of the other pages, sorted
	has      map[string]bool   // all of these
	pageOf   map[string]string // the path of the page for an assignment, by the path of its own page
	equal    map[string]int    // how many assignments a page is for, by its path
	left     int               // groups of equal assignments without a page
}

// collect finds all pages.
func (f *file) collect(about *PageData, full bool) error {
	f.first = []string{path("")}
	fleet, err := f.source.Fleet(f.ctx, "", Page{})
	if err != nil {
		return err
	}
	for i, e := range fleet.Environments {
		if e.Unreadable {
			continue
		}
		f.first = append(f.first, path("environments", e.Name), path("policies", e.Name),
			path("configs", e.Name))
		if i > 0 && !fleet.Environments[i-1].Unreadable {
			f.first = append(f.first, path("compare", fleet.Environments[i-1].Name, e.Name))
		}
		if e.Clusters > 0 {
			f.others = append(f.others, path("clusters", e.Name))
		}
		environment, err := f.source.Environment(f.ctx, e.Name)
		if err != nil {
			return err
		}
		for _, ct := range environment.ClusterTypes {
			f.others = append(f.others, path("cluster-types", e.Name, ct.Name))
		}
	}
	f.first = append(f.first, path("diagnostics"))
	if about.Revision != "" {
		f.first = append(f.first, path("changes"))
	}
	var groups [][]string // of each workload, the paths of its assignments' pages
	for _, row := range fleet.Workloads {
		f.others = append(f.others, path("workloads", row.Name))
		w, err := f.source.Workload(f.ctx, row.Name, Page{})
		if err != nil {
			return err
		}
		groups = append(groups, f.group(w.Assignments, full))
	}
	chosen := choose(groups, full)
	for _, of := range groups {
		f.left += len(of)
	}
	f.left -= len(chosen)
	f.others = append(f.others, chosen...)
	slices.Sort(f.others)
	for _, p := range slices.Concat(f.first, f.others) {
		f.has[p] = true
	}
	return nil
}

// group returns the paths of the pages for the assignments of a workload.
func (f *file) group(all []AssignmentRow, full bool) (paths []string) {
	first := map[string]string{} // the page of the first of equal ones
	for _, a := range all {
		own := pathOf(a)
		shown, known := first[a.Equal]
		if full || !known {
			shown, first[a.Equal] = own, own
			paths = append(paths, own)
		}
		f.pageOf[own] = shown
		f.equal[shown]++
	}
	return paths
}

// choose returns the pages of assignments that a file has: of each workload the first, then of
// each the second, and so on.
func choose(groups [][]string, full bool) (out []string) {
	for n, more := 0, true; more; n++ {
		more = false
		for _, of := range groups {
			if n < len(of) && (full || len(out) < maxDetails) {
				out, more = append(out, of[n]), true
			}
		}
	}
	return out
}

// pack puts the pages that may be packed together.
func (f *file) pack() (*packedPages, error) {
	p := &packer{}
	for _, at := range f.others {
		var html bytes.Buffer
		if err := f.section(&html, at); err != nil {
			return nil, err
		}
		if err := p.add(at, html.Bytes()); err != nil {
			return nil, err
		}
	}
	return p.finish()
}

func (f *file) section(w io.Writer, at string) error {
	p, err := find(f.ctx, f.source, at, nil, true)
	if err != nil {
		return err
	}
	body, err := f.renderer.html(p)
	if err != nil {
		return err
	}
	return f.renderer.templates.ExecuteTemplate(w, "file-page", struct {
		*page
		Body  template.HTML
		Equal int
		Left  int
	}{p, body, f.equal[at], f.left})
}

// index is the data of the file's search, in gzip and base64. It is a JSON array with a
// name, its kind and an address for each thing that a page shows.
func (f *file) index() (template.HTML, error) {
	all, err := f.source.Search(f.ctx, "", maxIndexed)
	if err != nil {
		return "", err
	}
	rows := [][3]string{}
	for _, hit := range all.Hits {
		at := path(hit.Page...)
		if address := f.address(cmp.Or(f.pageOf[at], at)); address != "" {
			rows = append(rows,
				[3]string{visible(hit.Name, longestName), visible(hit.Kind+" "+hit.Of, longestName), address})
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "", err
	}
	return zipped(text)
}

// maxIndexed is how much a file can search in.
const maxIndexed = 100_000

// address is the address of a page; "" if the file does not have it.
func (f *file) address(path string) string {
	if !f.has[path] {
		return ""
	}
	return "#" + path
}

// assignment returns the address of the page of an assignment, or of an equal assignment.
func (f *file) assignment(a AssignmentRow) string { return f.address(f.pageOf[pathOf(a)]) }

// hashOf is how a content security policy names a script or style that it allows.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
