package zarf_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// TestRefusals checks content that a package cannot contain, or that Zarf would process wrongly.
func TestRefusals(t *testing.T) {
	one := projected(t, commit, deployment("app", pinned))
	chart := projected(t, "1.2.3", deployment("app", pinned))
	options := func(fields string) bt.Platform {
		return bt.Platform{Options: `{"architecture": "amd64", ` + fields + `}`, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Projection: one}}}
	}
	target := func(target bt.Target) bt.Platform {
		if target.Name == "" {
			target.Name = "app/main"
		}
		return bt.Platform{Options: defaults, Targets: []bt.Target{target}}
	}
	git := func(g model.Git, p *model.Projection) bt.Platform {
		return target(bt.Target{Manifests: model.Manifests{Git: &g}, Projection: p})
	}
	overlay := func(k model.Kustomize) bt.Platform {
		return target(bt.Target{Manifests: model.Manifests{Kustomize: &k}, Projection: one})
	}
	helm := func(h model.Helm, p *model.Projection) bt.Platform {
		return target(bt.Target{Manifests: model.Manifests{Helm: &h}, Projection: p})
	}
	machine := func(p model.Package) bt.Platform { return target(bt.Target{Manifests: model.Manifests{Package: &p}}) }
	text := func(content string) model.MachineFile { return model.MachineFile{Content: &content, Mode: "0600"} }
	file := func(path string, f model.MachineFile) bt.Platform {
		return machine(model.Package{Files: map[string]model.MachineFile{path: f}})
	}
	rendered := func(objects ...string) bt.Platform {
		return target(bt.Target{Manifests: bt.Git, Render: true, Projection: projected(t, commit, objects...)})
	}
	values := bt.Value(t, `{"image": "###ZARF_REGISTRY###/app", "platform": 1}`)
	long := strings.Repeat("x", 1<<20)

	for name, c := range map[string]struct {
		platform bt.Platform
		want     diag.Code
		message  string
	}{
		"no-options":         {bt.Platform{Options: `{"images": 1}`, Targets: options(``).Targets}, diag.BadSpec, "cannot be read"},
		"required-default":   {options(`"required": true, "default": true`), diag.BadSpec, "required is not"},
		"other-architecture": {options(`"only": {"cluster": {"architecture": "arm64"}}`), diag.BadSpec, "for clusters of arm64"},
		"bad-image":          {options(`"images": ["Nginx"]`), diag.BadSpec, "no image"},
		"oci":                {target(bt.Target{Manifests: bt.OCI, Projection: one}), diag.UnsupportedManifests, "no manifests from OCI"},
		"ansible":            {target(bt.Target{Manifests: model.Manifests{Ansible: &model.Playbook{}}}), diag.UnsupportedManifests, "runs no playbooks"},
		"package-rendered":   {target(bt.Target{Manifests: model.Manifests{Package: &model.Package{}}, Render: true}), diag.UnsupportedManifests, "nothing to render"},
		"not-locked":         {target(bt.Target{Manifests: bt.Git}), diag.NotLocked, "not known"},
		"no-commit":          {git(*bt.Git.Git, projected(t, "main")), diag.NotLocked, "no commit"},
		"git-verify":         {git(model.Git{Repo: "https://x/y", Tag: "v1", Verify: &model.GitVerify{}}, one), diag.UnsupportedManifests, "no signatures"},
		"git-scheme":         {git(model.Git{Repo: "git://x/y", Tag: "v1"}, one), diag.UnsupportedManifests, "cannot read git://"},
		"git-path":           {git(model.Git{Repo: "/x/y", Tag: "v1"}, one), diag.UnsupportedManifests, "cannot read /x/y"},
		"git-query":          {git(model.Git{Repo: "https://x/y?z", Tag: "v1"}, one), diag.UnsupportedManifests, "as a repository"},
		"git-slashes":        {git(model.Git{Repo: "https://x//y", Tag: "v1"}, one), diag.UnsupportedManifests, "as a repository"},
		"git-folder":         {git(model.Git{Repo: "https://x/y", Tag: "v1", Path: "a?b"}, one), diag.UnsupportedManifests, "as a folder"},
		"git-kinds":          {git(*bt.Git.Git, projected(t, commit, widgets, widget)), diag.UnsupportedManifests, "definition of Widget"},
		"overlay-patches":    {overlay(model.Kustomize{Git: bt.Git.Git, Path: "x", Patches: []model.KustomPatch{{Patch: "x"}}}), diag.UnsupportedManifests, "without changes"},
		"overlay-images":     {overlay(model.Kustomize{Git: bt.Git.Git, Path: "x", Images: []model.KustomImage{{Name: "x"}}}), diag.UnsupportedManifests, "without changes"},
		"overlay-prefix":     {overlay(model.Kustomize{Git: bt.Git.Git, Path: "x", NamePrefix: "x-"}), diag.UnsupportedManifests, "without changes"},
		"overlay-oci":        {overlay(model.Kustomize{OCI: bt.OCI.OCI, Path: "x"}), diag.UnsupportedManifests, "git repositories only"},
		"helm-no-chart":      {helm(model.Helm{Repo: "https://x", Version: "1.2.3"}, chart), diag.UnsupportedManifests, "does not say which"},
		"helm-git":           {helm(model.Helm{Repo: "https://x/y.git", Chart: "app", Version: "1.2.3"}, chart), diag.UnsupportedManifests, "for a git repository"},
		"helm-no-version":    {helm(*bt.Registry.Helm, projected(t, "", deployment("app", pinned))), diag.NotLocked, "no version"},
		"helm-values-marker": {helm(model.Helm{OCI: "oci://x/y", Version: "1.2.3", Values: &values}, chart), diag.UnsupportedManifests, "###ZARF_REGISTRY### in values.yaml"},
		"release-digit":      {target(bt.Target{Name: "4app/main", Manifests: bt.Registry, Projection: chart}), diag.UnsupportedManifests, "begins with a letter"},
		"account-default":    {target(bt.Target{Manifests: bt.Git, Projection: one, Service: `{"name": "x", "deletion": "delete", "serviceAccount": {"name": "default"}}`}), diag.BadSpec, "service account default"},
		"package-deb":        {machine(model.Package{Deb: map[string]model.Deb{"x": {Version: "1"}}}), diag.UnsupportedManifests, "no Debian packages"},
		"package-units":      {machine(model.Package{Units: map[string]model.Unit{"x.service": {}}}), diag.UnsupportedManifests, "no systemd units"},
		"file-owner":         {file("/x", model.MachineFile{URL: "https://x/y", Digest: digest, Mode: "0600", Owner: "app"}), diag.UnsupportedManifests, "user who deploys"},
		"file-nothing":       {file("/x", model.MachineFile{Mode: "0600"}), diag.UnsupportedManifests, "neither content"},
		"file-mode":          {file("/x", model.MachineFile{URL: "https://x/y", Digest: digest, Mode: "rw"}), diag.UnsupportedManifests, "no permissions"},
		"file-git":           {file("/x/.git/config", text("x\n")), diag.BadFile, "git's own"},
		"file-git-stream":    {file("/x/.Git.:y", text("x\n")), diag.BadFile, "git's own"},
		"file-kalypso":       {file("/x/.kalypso-0.tmp", text("x\n")), diag.BadFile, "kalypso's own"},
		"file-outside":       {file("/x/../../../y", text("x\n")), diag.BadFile, "no clean path"},
		"file-windows":       {file("/x", text("x\r\n")), diag.UnsupportedManifests, "line feeds"},
		"file-marker":        {file("/x", text("host=###ZARF_VAR_HOST###\n")), diag.UnsupportedManifests, "###ZARF_VAR_HOST### in files/x"},
		"file-in-file":       {machine(model.Package{Files: map[string]model.MachineFile{"/x": text("x\n"), "/x-y": text(""), "/x/y": text("y\n")}}), diag.BadFile, "/x is a file"},
		"image-template":     {rendered(deployment("app", "{{ .image }}")), diag.UnsupportedManifests, "is a template"},
		"image-empty":        {rendered(deployment("app", "")), diag.UnsupportedManifests, "Deployment app: spec.template.spec.containers[0].image: the image is empty"},
		"rendered-no-object": {rendered(`{"kind": "ConfigMap"}`), diag.NotRendered, "no apiVersion"},
		"rendered-marker":    {rendered(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "###ZARF_CONST_A###"}}`), diag.UnsupportedManifests, "###ZARF_CONST_A### in manifests.yaml"},
		"rendered-long":      {rendered(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "` + long + `"}}`), diag.TooLarge, "a line of"},
		"rendered-workspace": {rendered(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "platform-config"}}`), diag.NameCollision, "both create ConfigMap platform-config"},
		"namespace-marker":   {target(bt.Target{Manifests: bt.Git, Projection: one, Service: `{"name": "x", "deletion": "delete", "annotations": {"a": "###ZARF_VAR_A###"}}`}), diag.UnsupportedManifests, "in namespace.yaml"},
		"description-marker": {target(bt.Target{Manifests: bt.Git, Projection: one, Workspace: "###ZARF_VAR_A###"}), diag.UnsupportedManifests, "in namespace.yaml"},
		"flux-semver":        {rendered(`{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "x"}, "spec": {"url": "oci://x/y", "ref": {"semver": "1.x"}}}`), diag.UnsupportedManifests, "range of versions"},
		"argo-git-scp":       {rendered(`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}, "spec": {"source": {"repoURL": "git@x:y", "targetRevision": "v1"}}}`), diag.UnsupportedManifests, "cannot mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, zarf.New(), c.platform)
			if len(tree.Folders) > 0 {
				t.Error("the assignment is emitted all the same")
			}
			i := slices.IndexFunc(tree.Diagnostics, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
			if i < 0 {
				t.Fatal("there is no error")
			}
			if d := tree.Diagnostics[i]; d.Code != c.want || !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 || len(d.Assignments) != 1 {
				t.Errorf("got %+v, want %s about %s with %q", d, c.want, "the assignment", c.message)
			}
			for _, d := range tree.Diagnostics {
				if d.Hint == "" && d.Code != diag.NotRendered && !strings.Contains(d.Message, "cannot be read") {
					t.Errorf("no way out: %+v", d)
				}
			}
		})
	}
}

// TestValues checks that the diagnostic has the path of a value that Zarf would change.
func TestValues(t *testing.T) {
	for _, m := range []bt.Target{
		{Manifests: bt.Git, Projection: projected(t, commit)},
		{Manifests: model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: "platform"}}, Projection: projected(t, "1.2.3")},
	} {
		m.Name = "app/main"
		a := bt.Platform{Options: defaults}.Assignment(t, m)
		a.Values = bt.Value(t, `{"a": "x", "b": {"c": ["y", "at ###ZARF_VAR_X###"], "d": 1}}`)
		_, ds := zarf.New().Emit(a)
		if len(ds) == 0 || ds[0].Path != "b.c" || ds[0].Code != diag.UnsupportedManifests {
			t.Errorf("got %+v", ds)
		}
	}
	a := bt.Platform{Options: defaults}.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git, Projection: projected(t, commit)})
	a.Values = bt.Value(t, `{"HASHES": "### ZARF_VAR_X ###, ###ZARF_var###, ZARF_VAR_X"}`)
	if _, ds := zarf.New().Emit(a); len(ds) > 0 {
		t.Errorf("got %+v, and Zarf replaces nothing of it", ds)
	}
}

// An empty restriction has no effect.
func TestOnly(t *testing.T) {
	for _, only := range []string{`{}`, `{"cluster": {}}`} {
		p := bt.Platform{Options: `{"architecture": "amd64", "required": true, "only": ` + only + `}`,
			Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Projection: projected(t, commit)}}}
		if tree := bt.Build(t, zarf.New(), p); strings.Contains(string(tree.Files["zarf.yaml"]), "only") {
			t.Errorf("%s: got\n%s", only, tree.Files["zarf.yaml"])
		}
	}
}

// TestIndexRefusals are folders that no package can be made of.
func TestIndexRefusals(t *testing.T) {
	share := func(name string) json.RawMessage {
		return json.RawMessage(`{"name": "` + name + `", "description": ""}`)
	}
	good := backends.Folder{DeploymentTarget: "app-main", Backend: "zarf", Shared: share("app-main")}
	with := func(change func(*backends.Folder)) backends.Folder { f := good; change(&f); return f }
	for name, c := range map[string]struct {
		folders     []backends.Folder
		description string
		want        diag.Code
	}{
		"other-backend": {[]backends.Folder{with(func(f *backends.Folder) { f.Backend = "flux" })}, "", diag.ReconcilerChange},
		"nothing":       {[]backends.Folder{with(func(f *backends.Folder) { f.Shared = nil })}, "", diag.ReconcilerChange},
		"no-json":       {[]backends.Folder{with(func(f *backends.Folder) { f.Shared = json.RawMessage(`{`) })}, "", diag.ReconcilerChange},
		"other-name":    {[]backends.Folder{with(func(f *backends.Folder) { f.Shared = share("db-main") })}, "", diag.ReconcilerChange},
		"newer":         {[]backends.Folder{with(func(f *backends.Folder) { f.Shared = json.RawMessage(`{"name": "app-main", "actions": {}}`) })}, "", diag.ReconcilerChange},
		"outside": {[]backends.Folder{with(func(f *backends.Folder) {
			f.Shared = json.RawMessage(`{"name": "app-main", "manifests": [{"name": "x", "files": ["app-main/../../x"]}]}`)
		})}, "", diag.ReconcilerChange},
		"other-folder": {[]backends.Folder{with(func(f *backends.Folder) {
			f.Shared = json.RawMessage(`{"name": "app-main", "files": [{"source": "/etc/passwd", "target": "x"}]}`)
		})}, "", diag.ReconcilerChange},
		"other-chart": {[]backends.Folder{with(func(f *backends.Folder) {
			f.Shared = json.RawMessage(`{"name": "app-main", "charts": [{"name": "x", "localPath": ".."}]}`)
		})}, "", diag.ReconcilerChange},
		"cycle": {[]backends.Folder{
			with(func(f *backends.Folder) { f.DependsOn = []string{"db-main"} }),
			{DeploymentTarget: "db-main", Backend: "zarf", Shared: share("db-main"), DependsOn: []string{"app-main"}},
		}, "", diag.DependsOn},
		"marker": {[]backends.Folder{good}, "For ###ZARF_PKG_ARCH###", diag.BadSpec},
	} {
		t.Run(name, func(t *testing.T) {
			ct := bt.Platform{Options: defaults}.ClusterType(t)
			ct.Description = c.description
			files, ds := zarf.New().Index(ct, c.folders)
			if len(files) > 0 || len(ds) == 0 || ds[0].Code != c.want || len(ds[0].Sites) == 0 || ds[0].Hint == "" {
				t.Errorf("got %d files and %+v, want %s", len(files), ds, c.want)
			}
		})
	}
	ct := bt.Platform{Options: `{"required": true, "default": true}`}.ClusterType(t)
	if files, ds := zarf.New().Index(ct, nil); len(files) > 0 || !diag.Errors(ds) {
		t.Errorf("got %d files and %+v", len(files), ds)
	}
}

// The waves of kept folders may be out of date. A folder must still come after its
// dependencies.
func TestOrderOfDependencies(t *testing.T) {
	folder := func(name string, wave int, dependsOn ...string) backends.Folder {
		return backends.Folder{DeploymentTarget: name, Backend: "zarf", Wave: wave, DependsOn: dependsOn,
			Shared: json.RawMessage(`{"name": "` + name + `", "description": "", "required": true}`)}
	}
	files, ds := zarf.New().Index(bt.Platform{Options: defaults}.ClusterType(t), []backends.Folder{
		folder("a", 0, "d"), folder("b", 0), folder("c", 1, "gone"), folder("d", 3),
	})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	text := string(files[slices.IndexFunc(files, func(f backends.File) bool { return f.Path == zarf.DefinitionFile })].Data)
	var got []string
	for line := range strings.SplitSeq(text, "\n") {
		if name, ok := strings.CutPrefix(line, "- name: "); ok {
			got = append(got, name)
		}
	}
	if strings.Join(got, " ") != "b c d a" {
		t.Errorf("got %s", got)
	}
}
