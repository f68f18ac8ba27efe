package application

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project"
	"github.com/kalypso-io/kalypso/compiler/project/helm"
	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
	platform "github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// source is the content that an application renders: a chart's archive, a chart of its folder, or
// overlays among the files of its folder.
type source struct {
	tree  *archive.Tree // of the folder
	chart []byte
	files map[string][]byte // of the chart or the overlays in the folder
	// content identifies the content that is rendered.
	content string
	// pinned is the digest of chart in kalypso.lock. It is "" for a chart of the folder.
	pinned dependency.Digest
}

// lockSource returns the source that kalypso.lock pins; ok is false for an
// application that has everything itself.
func lockSource(app *model.Application) (s dependency.Source, ok bool) {
	h := app.Manifests.Helm
	if h == nil || h.Path != "" {
		return s, false
	}
	return dependency.SourceOf(model.Manifests{Helm: &model.Helm{Repo: h.Repo, OCI: h.OCI,
		Chart: h.Chart, Version: h.Version}})
}

var manifestsRef = model.Ref{Collection: "application", Path: "manifests"}

// openSource reads the content that is rendered.
func openSource(r Request, app *model.Application, contents *dependency.Library) (s source,
	ds []diag.Diagnostic, err error) {
	s.tree, err = readFolder(r.Dir,
		func(folder string) bool { return folder != r.without && enters(app, folder) })
	if err != nil {
		var own *archive.FolderError
		if errors.As(err, &own) {
			return s, addSite([]diag.Diagnostic{diag.New(diag.BadSource,
				own.Error()).Hinting("keep what is rendered small, and without links that lead out")},
				manifestsRef), nil
		}
		return s, nil, err
	}
	if locked, ok := lockSource(app); ok {
		entry, ds := contents.Entry(locked)
		s.pinned, s.content = entry.Content, string(entry.Content)
		if len(ds) == 0 {
			s.chart, ds = contents.Content(entry)
		}
		return s, addSite(ds, manifestsRef.At("helm")), nil
	}
	h := app.Manifests.Helm
	if h == nil {
		s.files = s.tree.Data()
		s.content = folderDigest(s.tree)
		return s, nil, nil
	}
	chart, err := s.tree.Sub(path.Clean(h.Path))
	if err != nil {
		return s, addSite([]diag.Diagnostic{diag.New(diag.BadSource,
			fmt.Sprintf("there is no chart in %s: %v", h.Path, err)).
			Hinting("helm.path is the folder with the chart's Chart.yaml, from the folder of kalypso.yaml")},
			manifestsRef.At("helm.path")), nil
	}
	if refused := slices.Sorted(maps.Keys(chart.Refused)); len(refused) > 0 {
		return s, addSite([]diag.Diagnostic{diag.New(diag.BadSource,
			fmt.Sprintf("the chart in %s cannot be read: %s %s", h.Path, refused[0],
				chart.Refused[refused[0]])).
			Hinting(archive.WayOut(chart.Refused[refused[0]],
				"keep it as a file of the application's own folder"))}, manifestsRef.At("helm.path")), nil
	}
	s.files, s.content = chart.Data(), folderDigest(chart)
	return s, nil, nil
}

// folderDigest identifies the files of a tree, and the reasons for those that it refuses.
func folderDigest(t *archive.Tree) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(t.Files)) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(t.Files[name].Data))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Refused)) {
		fmt.Fprintf(h, "%q %q\n", name, t.Refused[name])
	}
	return fmt.Sprintf("folder %x", h.Sum(nil))
}

// digest identifies the files below one environment, or for "" the files outside the
// environments. A chart of the folder counts with its files, because its archive has times
// in it.
func (s *source) digest(environment string) model.Digest {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", s.pinned)
	for _, name := range slices.Sorted(maps.Keys(s.tree.Files)) {
		below, isEnvironment := strings.CutPrefix(name, platform.Environments+"/")
		of, _, _ := strings.Cut(below, "/")
		if isEnvironment == (environment != "") && (environment == "" || of == environment) {
			fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(s.tree.Files[name].Data))
		}
	}
	return model.Digest(fmt.Sprintf("%x", h.Sum(nil)))
}

// addSite adds a site to diagnostics.
func addSite(ds []diag.Diagnostic, ref model.Ref) []diag.Diagnostic {
	for i := range ds {
		ds[i] = ds[i].At(ref, "")
	}
	return ds
}

// enters reports whether a folder of an application matters. With overlays, all folders do,
// because overlays can refer to any folder. With a chart, other folders may have anything
// and do not matter.
func enters(app *model.Application, folder string) bool {
	h := app.Manifests.Helm
	if h == nil {
		return true
	}
	for _, of := range []string{platform.Environments, path.Clean(h.Path)} {
		if h.Path != "" && of == "." || within(folder, of) || within(of, folder) {
			return true
		}
	}
	return false
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// readFolder reads the files of a folder, without hidden ones, in the folders that enters
// allows. Links that lead out of it count as missing.
func readFolder(dir string, enter func(folder string) bool) (*archive.Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return archive.ReadFolder(root, func(name string) bool {
		return !strings.HasPrefix(path.Base(name), ".") && enter(name)
	})
}

// job returns the job that renders a target, without the content.
func (s *source) job(app *model.Application, t *Target) *project.Job {
	h := app.Manifests.Helm
	if h == nil {
		return &project.Job{Kustomize: &kustomize.Request{
			Path: path.Join(t.Dir, app.Manifests.Kustomize.Path)}}
	}
	release := h.ReleaseName
	if release == "" {
		release = model.ShortName(model.FullName(app.Name, t.Name), model.MaxHelmRelease)
	}
	return &project.Job{Helm: &helm.Request{
		ReleaseName: release, Namespace: app.Namespace, Values: t.Values,
		KubernetesVersion: strings.TrimPrefix(app.KubernetesVersion, "v"), APIVersions: app.APIVersions,
	}}
}

// fill adds the content to a job.
func (s *source) fill(job *project.Job) []diag.Diagnostic {
	if job.Helm != nil {
		job.Helm.Chart, job.Helm.Files = s.chart, s.files
	} else {
		job.Kustomize.Files, job.Kustomize.Refused = s.files, s.tree.Refused
	}
	return nil
}
