package engine

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/helm"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// content identifies the content that the manifests of an assignment are rendered from: an entry
// of the lock, or a chart in the platform's folder.
type content struct {
	entry dependency.Entry // of the lock; zero for a chart of the platform
	// tree has the chart of the platform and its files of values, by their paths from the root. It
	// is nil for an entry of the lock.
	tree *archive.Tree
	// digest identifies the bytes.
	digest dependency.Digest
	// revision is the rendered revision, as in model.Projection.
	revision string
}

// content returns the content of an assignment's manifests, or the diagnostics that explain why it
// cannot be used. A playbook that is not rendered needs only its pin, not its content. ok is false
// for manifests without content.
func (p *Inputs) content(a *schedule.Assignment) (c content, ok bool, ds []diag.Diagnostic) {
	if h := a.Manifests.Helm; h != nil && h.Path != "" {
		c, ds = openChart(p, h)
		return c, true, ds
	}
	from, ok := dependency.SourceOf(a.Manifests)
	if !ok {
		return c, false, nil
	}
	pinned := p.request.Library.Pinned
	if a.Manifests.Ansible != nil && !a.Target.Render {
		pinned = p.request.Library.Entry
	}
	c.entry, ds = pinned(from)
	c.digest, c.revision = c.entry.Content, c.entry.Revision
	return c, true, ds
}

// openChart reads a chart of the platform and its files of values, once.
func openChart(p *Inputs, h *model.Helm) (content, []diag.Diagnostic) {
	key := strings.Join(append([]string{h.Path}, h.ValuesFiles...), "\x00")
	read, _ := p.charts.LoadOrStore(key, sync.OnceValues(func() (content, []diag.Diagnostic) {
		return readChart(p.request.Platform, h)
	}))
	return read.(func() (content, []diag.Diagnostic))()
}

func readChart(platform *source.Platform, h *model.Helm) (content, []diag.Diagnostic) {
	bad := func(hint, format string, args ...any) (content, []diag.Diagnostic) {
		return content{}, []diag.Diagnostic{
			diag.New(diag.BadSource, fmt.Sprintf(format, args...)).Hinting(hint)}
	}
	c := content{tree: &archive.Tree{Files: map[string]archive.File{}, Refused: map[string]string{}}}
	for folders := []string{h.Path}; len(folders) > 0; folders = folders[1:] {
		chart, err := platform.Folder(folders[0])
		if err != nil && folders[0] != h.Path {
			continue // the render names the dependency that is missing
		}
		if err != nil {
			return bad("path is the folder with the chart's Chart.yaml, from the folder of the CUE file "+
				"that names it", "the chart in %s cannot be read: %v", h.Path, source.Reason(err))
		}
		for name, f := range chart.Files {
			c.tree.Files[path.Join(folders[0], name)] = f
		}
		for name, reason := range chart.Refused {
			c.tree.Refused[path.Join(folders[0], name)] = reason
		}
		for _, folder := range helm.LocalDependencies(chart.Files["Chart.yaml"].Data) {
			folder = path.Join(folders[0], folder)
			if _, known := c.tree.Files[path.Join(folder, "Chart.yaml")]; !known {
				folders = append(folders, folder)
			}
		}
	}
	for _, name := range h.ValuesFiles {
		if problem, hint := platform.Files().Refuse(name); problem != "" {
			return bad(hint, "the file of values %s %s", name, problem)
		}
		data, err := platform.Files().ReadFile(name)
		if err != nil {
			return bad("a file of values is found from the folder of the CUE file that names it",
				"the file of values %s cannot be read: %v", name, source.Reason(err))
		}
		c.tree.Files[name] = archive.File{Data: data}
	}
	c.revision = helm.Version(c.tree.Files[path.Join(h.Path, "Chart.yaml")].Data)
	c.digest = dependency.Digest(model.DigestBytes(archive.Pack(c.tree)))
	return c, nil
}

// versionOf returns the version of an assignment: the one that the platform names, or one that is
// derived from the source of its manifests. The lock says more of a source than its fields if the
// emission needs its content.
func versionOf(p *Inputs, a *schedule.Assignment) (string, model.VersionSource) {
	if a.Version != "" {
		return a.Version, ""
	}
	key := versionKey{a.Manifests, p.needsContent(a)}
	if known, ok := p.versions.Load(key); ok {
		v := known.(version)
		return v.version, v.from
	}
	v := version{}
	v.version, v.from = a.Manifests.Version()
	var c content
	known := false
	if key.content {
		var ds []diag.Diagnostic
		c, known, ds = p.content(a)
		known = known && len(ds) == 0
	}
	if known {
		switch h := a.Manifests.Helm; {
		case h != nil && h.Git != nil:
			tree, ds := p.request.Library.Tree(c.entry)
			if len(ds) == 0 {
				chart, _ := tree.File(path.Join(h.Git.Path, "Chart.yaml"))
				if of := helm.Version(chart.Data); of != "" {
					v = version{of, model.ChartVersion}
				}
			}
		case h != nil:
			v = version{c.revision, model.ChartVersion}
		}
		switch {
		case v.version != "":
		case c.entry.Kind == dependency.OCI:
			v = version{model.ShortRevision(c.revision), model.DigestVersion}
		case c.entry.Kind == dependency.Git:
			v = version{model.ShortRevision(c.revision), model.CommitVersion}
		}
	}
	p.versions.Store(key, v)
	return v.version, v.from
}

type version struct {
	version string
	from    model.VersionSource
}

// versionKey identifies the manifests of an assignment, which the schedule shares, and whether its
// emission needs their content.
type versionKey struct {
	manifests model.Manifests
	content   bool
}

// addCharts adds the platform's charts to the digests of the source, if digests of files identify
// it. A chart in the environment's own folder belongs to the environment, as its other files do.
func (p *Inputs) addCharts() {
	if !p.digests {
		return
	}
	files := map[string]model.Digest{} // by name
	for i := range p.Model.Workloads {
		for _, t := range p.Model.Workloads[i].Targets {
			if h := t.Manifests.Helm; h != nil && h.Path != "" {
				c, _ := openChart(p, h)
				if c.tree == nil {
					continue // it cannot be read
				}
				for name, f := range c.tree.Files {
					files[name] = model.DigestBytes(f.Data)
				}
			}
		}
	}
	base, own := "", ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		in := &base
		if strings.HasPrefix(name, path.Join(source.Environments, p.Name)+"/") {
			in = &own
		}
		*in += name + " " + string(files[name]) + "\n"
	}
	if base != "" {
		p.Source.Base = addDigest(p.Source.Base, sha256.Sum256([]byte(base)))
	}
	if own != "" {
		p.Source.Environment = addDigest(p.Source.Environment, sha256.Sum256([]byte(own)))
	}
}

// addDigest returns a digest that combines files and others. If others is zero, it returns files.
func addDigest(files tree.Revision, others [sha256.Size]byte) tree.Revision {
	if others == [sha256.Size]byte{} {
		return files
	}
	return tree.Revision(model.DigestBytes(append([]byte(files), others[:]...)))
}

// addDependencies adds to the files of a chart its dependencies in other folders of the source, as
// `helm dependency build` does. Its Chart.yaml names them by file://. Dependencies in its folder
// charts take precedence. in is the folder charts/NAME/ of a dependency, or "". folders are the
// folders of the charts around it in the source, and its own at the end.
func addDependencies(files map[string][]byte, in string, from *archive.Tree, folders []string) {
	own := folders[len(folders)-1]
	for name, folder := range helm.LocalDependencies(files[in+"Chart.yaml"]) {
		folder, to := path.Join(own, folder), in+"charts/"+name+"/"
		chart, err := from.Sub(folder)
		if err != nil || len(chart.Refused) > 0 || slices.Contains(folders, folder) ||
			slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(there string) bool {
				return strings.HasPrefix(there, to) || strings.HasPrefix(there, in+"charts/"+name+"-")
			}) {
			continue // the render names a dependency that is missing
		}
		for file, f := range chart.Files {
			files[to+file] = f.Data
		}
		addDependencies(files, to, from, append(slices.Clip(folders), folder))
	}
}

// unpackChart adds a chart from a folder, of a git repository or of the platform, to a request.
func unpackChart(r *helm.Request, from *archive.Tree, folder, of string) []diag.Diagnostic {
	bad := func(hint, format string, args ...any) []diag.Diagnostic {
		return []diag.Diagnostic{diag.New(diag.BadSource, fmt.Sprintf(format, args...)).Hinting(hint)}
	}
	chart, err := from.Sub(path.Clean(folder))
	if err == nil {
		_, err = chart.File("Chart.yaml")
	}
	if err != nil {
		return bad("path is the folder with the chart's Chart.yaml", "there is no chart in %s%s: %v",
			folder, of, err)
	}
	for _, name := range slices.Sorted(maps.Keys(chart.Refused)) {
		return bad(archive.WayOut(chart.Refused[name], "keep it as a file of the chart's own folder"),
			"the chart in %s%s cannot be read: %s %s", folder, of, name, chart.Refused[name])
	}
	r.Files = chart.Data()
	addDependencies(r.Files, "", from, []string{path.Clean(folder)})
	for i, f := range r.ValuesFiles {
		file, err := from.File(f.Name)
		if err != nil {
			return bad("name a file of the chart's source, from its root",
				"the file of values %s%s cannot be read: %v", f.Name, of, err)
		}
		r.ValuesFiles[i].Data = file.Data
	}
	return nil
}
