package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// maxBytes is the largest size of a file that is read.
const maxBytes = 512 << 20

// inventory is an inventory with its file.
type inventory struct {
	*model.Inventory
	reader *reader
	file   string // from the platform's root
	digest [sha256.Size]byte
	rows   []row
	// wrong are the errors of rows, by kind.
	wrong map[string]*few
	kinds []string // the kinds in wrong, in the order of their first errors

	scratch []byte   // for digests of rows
	names   []string // likewise
	// labels are the labels of a row, and shared the labels of earlier rows, by their
	// content.
	labels []label
	shared map[string]map[string]string
	filter *Filter // nil if all rows are clusters
	// labelNames are the label names that columns are named for, sorted.
	labelNames []string
}

// inventory reads an inventory. If it cannot be read, the fleet is incomplete.
func (r *reader) inventory(m *model.Inventory) *inventory {
	inv := &inventory{Inventory: m, reader: r, wrong: map[string]*few{},
		filter: NewFilter(m, r.satisfies), shared: map[string]map[string]string{},
		labelNames: slices.Sorted(maps.Keys(m.Columns.Labels))}
	data, problem, unpinned := inv.open()
	if problem == nil && !unpinned {
		problem = inv.read(data)
	}
	if unpinned {
		r.fleet.Incomplete = true
		return inv
	}
	switch f := inv.filter; {
	case problem != nil:
	case f != nil && f.rows > 0 && f.held == 0: // also if rows are wrong, which others may own
		problem = f.unsatisfied(m)
	case len(inv.rows) == 0 && len(inv.kinds) == 0 && !m.AllowEmpty:
		problem = &fault{message: "has no rows", hint: "where that is right, write allowEmpty: true"}
	}
	if problem != nil {
		r.fleet.Incomplete = true
		r.diagnostics = append(r.diagnostics, inv.cannot(problem))
	}
	inv.checkLabels()
	for _, kind := range inv.kinds {
		r.diagnostics = append(r.diagnostics,
			inv.wrong[kind].diagnostics("rows of inventory "+inv.Name)...)
	}
	return inv
}

// fault is the reason why a file cannot be read, or no further.
type fault struct {
	message      string // the text after "the file"
	line, column int    // 0 for the whole file
	hint         string
	path         string // the field of the inventory that is wrong; "" for file
}

func (inv *inventory) ref() model.Ref {
	return model.Ref{Collection: "inventories",
		Name: inv.Name}
}

func (inv *inventory) cannot(f *fault) diag.Diagnostic {
	d := diag.New(diag.BadInventory, fmt.Sprintf("which clusters inventory %s has is not known: %s %s",
		inv.Name, inv.File, f.message))
	if f.line > 0 {
		d = d.In(model.Position{File: inv.file, Line: f.line, Column: max(f.column, 1)}, "")
	}
	at := inv.ref().At(cmp.Or(f.path, "file"))
	return d.At(at, "").On(at.String()).Hinting(f.hint)
}

// open finds and reads the file. It reports a file that the lock does not have.
func (inv *inventory) open() (data []byte, problem *fault, unpinned bool) {
	if inv.From == nil {
		data, problem = inv.openOwn()
		return data, problem, false
	}
	tree, revision, ds := inv.reader.pinned(inv.From.Manifests())
	for _, d := range ds {
		inv.reader.diagnostics = append(inv.reader.diagnostics,
			d.At(inv.ref().At("from"), "").On(inv.ref().At("from").String()))
	}
	if tree == nil {
		return nil, nil, true
	}
	name := path.Clean(inv.File)
	inv.file = inv.Name + "@" + revision[:min(12, len(revision))] + "/" + name
	file, err := tree.File(name)
	if err != nil {
		return nil, &fault{message: "cannot be read of what is pinned: " + err.Error(),
			hint: "name a file of the source, from its root, and run `kalypso lock`"}, false
	}
	if len(file.Data) > maxBytes {
		return nil, tooLarge, false
	}
	return file.Data, nil, false // the lock's digest is a part of the base
}

var tooLarge = &fault{message: fmt.Sprintf("has more than %d MiB", maxBytes>>20),
	hint: "keep what is needed of it, or divide it into several inventories"}

// locate returns the name of an inventory's file from the platform's root. A file outside
// the platform, or in several folders, is a fault.
func locate(files *source.Files, env *model.Environment, inv *model.Inventory) (string, *fault) {
	at := env.Positions.Of(model.Ref{Collection: "inventories", Name: inv.Name, Path: "file"})
	name, ok := source.NamedFrom(at, inv.File)
	if !ok {
		return "", &fault{message: "is named in several folders", hint: "a file is found from the " +
			"folder of the CUE file that names it: name it in one"}
	}
	if problem, hint := files.Refuse(name); problem != "" {
		return name, &fault{message: problem, hint: hint}
	}
	return name, nil
}

// Locate returns the name of an inventory's file from the platform's root, even if it does
// not exist. It returns an error if the inventory has no file in the platform.
func Locate(files *source.Files, env *model.Environment, inv *model.Inventory) (string, error) {
	if inv.From != nil {
		return "", fmt.Errorf("the file of inventory %s is in another place, of which kalypso.lock "+
			"pins the content: change it there, and run kalypso lock --update %[1]s", inv.Name)
	}
	name, wrong := locate(files, env, inv)
	if wrong != nil {
		return "", fmt.Errorf("the file %s of inventory %s %s: %s", inv.File, inv.Name, wrong.message,
			wrong.hint)
	}
	return name, nil
}

// openOwn is open for a file of the platform.
func (inv *inventory) openOwn() ([]byte, *fault) {
	files := inv.reader.files
	var wrong *fault
	if inv.file, wrong = locate(files, inv.reader.env, inv.Inventory); wrong != nil {
		return nil, wrong
	}
	info, err := files.Stat(inv.file)
	if err == nil && info.Size() > maxBytes {
		return nil, tooLarge
	}
	data, err := []byte(nil), err
	if err == nil {
		data, err = files.ReadFile(inv.file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault{message: "is not there", hint: "a file is found from the folder of the CUE " +
			"file that names it: " + inv.file}
	case err != nil:
		return nil, &fault{message: "cannot be read: " + source.Reason(err).Error(),
			hint: "let kalypso read the file"}
	}
	inv.digest = sha256.Sum256(data)
	return data, nil
}

// read makes rows from the file's content.
func (inv *inventory) read(data []byte) *fault {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &fault{message: "is UTF-16", line: 1, hint: "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch Format(inv.Inventory) {
	case model.CSVInventory:
		return inv.readCSV(data)
	case model.JSONInventory:
		return inv.readJSON(data)
	case model.NDJSONInventory:
		// Make a row of each line that is not empty.
		n := 0
		for line := range bytes.Lines(data) {
			n++
			line = bytes.TrimSpace(line)
			if len(line) > 0 {
				inv.raw(line, model.Position{File: inv.file, Line: n, Column: 1})
			}
		}
		return nil
	case model.YAMLInventory:
		return inv.readYAML(data)
	}
	return &fault{message: "has an ending that says nothing",
		hint: `say what it is: format: "csv", "json", "ndjson" or "yaml"`}
}

// Format returns the format of the file of an inventory, by its ending if the inventory has
// no format; "" if the ending is unknown.
func Format(inv *model.Inventory) model.InventoryFormat {
	if inv.Format != "" {
		return inv.Format
	}
	switch strings.ToLower(path.Ext(inv.File)) {
	case ".csv":
		return model.CSVInventory
	case ".json":
		return model.JSONInventory
	case ".ndjson", ".jsonl":
		return model.NDJSONInventory
	case ".yaml", ".yml":
		return model.YAMLInventory
	}
	return ""
}

// report adds an error of a kind about a row.
func (inv *inventory) report(kind string, d func() diag.Diagnostic) {
	if inv.wrong[kind] == nil {
		inv.wrong[kind] = &few{}
		inv.kinds = append(inv.kinds, kind)
	}
	inv.wrong[kind].add(d)
}

// refuse reports an error of a row. cluster is the row's cluster. If cluster is "", the
// cluster is unknown, and the fleet is incomplete.
func (inv *inventory) refuse(kind, cluster string, at model.Position, message, hint string) {
	if cluster == "" {
		inv.reader.fleet.Incomplete = true
	} else {
		inv.reader.invalid(cluster)
	}
	inv.report(kind, func() diag.Diagnostic {
		path := inv.ref().String()
		if cluster != "" {
			path = ref(cluster).String()
		}
		return diag.New(diag.BadRow, message).In(at, "").On(path).Hinting(hint)
	})
}

// checkLabels removes the rows whose labels do not satisfy the inventory's constraint.
func (inv *inventory) checkLabels() {
	if inv.Labels.Op == model.OpAll || len(inv.rows) == 0 {
		return
	}
	// numbers of sets of labels, which rows share
	known, sets := map[uintptr]int{}, []map[string]string{}
	of := make([]int, len(inv.rows))
	for i := range inv.rows {
		at := reflect.ValueOf(inv.rows[i].Labels).Pointer()
		n, there := known[at]
		if !there {
			n = len(sets)
			known[at], sets = n, append(sets, inv.rows[i].Labels)
		}
		of[i] = n
	}
	index := selector.NewIndex(func(yield func(selector.Facts) bool) {
		facts := selector.Facts{}
		for _, labels := range sets {
			clear(facts)
			for k, v := range labels {
				facts[k] = selector.Values(v)
			}
			if !yield(facts) {
				return
			}
		}
	}, inv.reader.satisfies)
	right := make([]bool, len(sets))
	for _, n := range index.Select(inv.Labels) {
		right[n] = true
	}
	if !slices.Contains(right, false) {
		return
	}
	kept := inv.rows[:0]
	for i := range inv.rows {
		if right[of[i]] {
			kept = append(kept, inv.rows[i])
			continue
		}
		row := &inv.rows[i]
		for _, m := range index.Why(inv.Labels, of[i]) {
			inv.refuse("label "+m.Path, row.Name, row.at,
				fmt.Sprintf("label of cluster %s: %s", row.Name, m),
				"correct the row, or labels of inventory "+inv.Name)
		}
	}
	inv.rows = kept
}

// digests identify the content of files in the folder of the environment, and of all
// others, or zero.
func digests(all []*inventory, folder string) (base, own [sha256.Size]byte) {
	hashes := map[bool][]byte{}
	for _, inv := range all {
		if inv.file != "" && inv.From == nil {
			in := strings.HasPrefix(inv.file, folder)
			hashes[in] = append(append(hashes[in], inv.Name...), inv.digest[:]...)
		}
	}
	if b := hashes[false]; b != nil {
		base = sha256.Sum256(b)
	}
	if b := hashes[true]; b != nil {
		own = sha256.Sum256(b)
	}
	return base, own
}
