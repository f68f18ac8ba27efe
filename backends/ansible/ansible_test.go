package ansible_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const every = `{"remoteUser": "root", "serial": "50%", "maxFailPercentage": 25, "interval": "1h30m", "python": "/usr/bin/python3.11", "stateDirectory": "/srv/kalypso"}`

var (
	digest = "sha256:" + strings.Repeat("0a", 32)
	commit = strings.Repeat("0b", 20)
)

func packaged(p model.Package) model.Manifests { return model.Manifests{Package: &p} }

func playbook(p model.Playbook) model.Manifests { return model.Manifests{Ansible: &p} }

// platforms returns the platforms of the golden files, by name.
func platforms(t *testing.T) map[string]bt.Platform {
	values := bt.Value(t, `{"SITE": "{{ site }}", "list": [1, "{% x %}"]}`)
	clusters := []model.Cluster{
		{Name: "3-site", Address: "192.0.2.7", Labels: map[string]string{"zone": "no", "note": "{{ x }}"}, Values: &values},
		{Name: "plain"},
	}
	everything := packaged(model.Package{
		Deb: map[string]model.Deb{
			"libstdc++6": {Version: "12.2.0-14"},
			"app":        {Version: "2:1.0~rc1-1+b2", URL: "https://packages.example.test/" + strings.Repeat("long/", 40) + "app.deb", Digest: digest},
		},
		Files: map[string]model.MachineFile{
			"/opt/app/conf/app.conf":                                {Content: text("a: {{ 1 }}\n"), Mode: "0640", Owner: "www-data", Group: "adm"},
			"/opt/app/" + strings.Repeat("deep/", 40) + "model.bin": {URL: "https://files.example.test/model.bin", Digest: digest, Mode: "0644"},
		},
		Units: map[string]model.Unit{
			"app.service": {Enabled: true, Harden: true},
			"web.service": {Enabled: true, Harden: true,
				Unit:    value(t, `{"Description": "Web {{ x }}", "After": ["network.target", "app.service"]}`),
				Service: value(t, `{"ExecStart": "/usr/bin/web --config /opt/app/conf/app.conf", "Restart": "always", "RestartSec": 5, "ProtectHome": "read-only", "ReadWritePaths": "/srv/web"}`),
				Install: value(t, `{"WantedBy": ["graphical.target"]}`)},
			"web.socket":      {Enabled: true, Socket: value(t, `{"ListenStream": 8080}`)},
			"nightly.timer":   {Enabled: true, Timer: value(t, `{"OnCalendar": "daily", "Persistent": true}`)},
			"nightly.service": {Harden: true, Service: value(t, `{"Type": "oneshot", "ExecStart": "/usr/bin/app tidy"}`)},
			"worker@.service": {Service: value(t, `{"ExecStart": "/usr/bin/app worker %i"}`)},
		},
	})
	service := `{"name": "x", "deletion": "orphan", "machine": {"user": "app", "groups": ["video"], "directories": {"/srv/app": {"mode": "0700"}, "/home/app": {"mode": "0750"}},
		"limits": {"cpu": "150%", "memory": "512M", "tasks": 100, "openFiles": 4096}}, "secrets": {"lookup": {"plugin": "community.hashi_vault.vault_kv2_get",
		"terms": ["$(key)"], "options": {"engine_mount_point": "$(store)"}, "result": "secret.$(property)"}}}`
	secrets := []backends.Secret{{Name: "DB_PASSWORD", Store: "kv", Key: `app/it's {{ a }} \ key`, Property: "password"}}
	git := model.Git{Repo: "https://git.example.test/app", Commit: commit}
	vars := value(t, `{"app_port": 80, "app_greeting": "{{ not_a_template }}"}`)
	return map[string]bt.Platform{
		"empty": {Options: defaults},
		"package": {Options: defaults, GitOps: bt.GitOps, Clusters: clusters, Targets: []bt.Target{
			{Name: "app/main", Manifests: everything, Service: service, Secrets: secrets}}},
		"options": {Options: every, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: packaged(model.Package{}), Format: model.JSON}}},
		"names": {Options: defaults, Targets: []bt.Target{
			{Name: "3scale/main", Manifests: packaged(model.Package{})}, {Name: strings.Repeat("w", 63) + "/a", Manifests: packaged(model.Package{})}}},
		"depends-on": {Options: defaults, Targets: []bt.Target{
			{Name: "a/main", Manifests: packaged(model.Package{}), DependsOn: []string{"b-main"}, Wave: 1}, {Name: "b/main", Manifests: packaged(model.Package{})}}},
		"playbook": {Options: defaults, Targets: []bt.Target{
			{Name: "app/main", Manifests: playbook(model.Playbook{Git: &git, Playbook: "deploy/site.yml", Vars: vars}), Service: service, Secrets: secrets}}},
		"playbook-rendered": {Options: defaults, Targets: []bt.Target{{Name: "app/main", Render: true,
			Manifests:  playbook(model.Playbook{Git: &git, Playbook: "site.yml", Vars: vars}),
			Projection: &model.Projection{Files: []model.ProjectedFile{{Path: "roles/app/tasks/main.yml", Data: []byte("---\n[]\n")}, {Path: "site.yml", Data: []byte("---\n- hosts: all\n")}}}}}},
	}
}

// TestOutput compares the output with golden files, without the role, which is the same in all.
func TestOutput(t *testing.T) {
	for name, p := range platforms(t) {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, ansible.New(), p)
			for target, digest := range tree.Digests {
				if !strings.Contains(string(tree.Files[target+"/assignment.yml"]), "digest: "+string(digest)) {
					t.Errorf("%s does not have the digest of its values, %s", target, digest)
				}
			}
			for file := range tree.Files {
				if strings.HasPrefix(file, "roles/kalypso/tasks/") || strings.HasPrefix(file, "roles/kalypso/templates/") {
					delete(tree.Files, file)
				}
			}
			tree.Golden(t)
		})
	}
}

// TestSlowLint runs ansible-lint on all of a tree but the playbooks of users. Trees of other
// platforms have no other forms.
func TestSlowLint(t *testing.T) {
	needTools(t)
	all := platforms(t)
	for _, name := range []string{"package", "playbook-rendered"} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, ansible.New(), all[name])
			if len(tree.Bootstrap) > 0 {
				tree.Files["bootstrap.yml"] = tree.Bootstrap
			}
			dir := t.TempDir()
			writeTree(t, dir, tree)
			cmd := exec.Command("ansible-lint", "--offline", "--nocolor", "--strict", "--profile", "production", "--exclude", "app-main/playbook")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Passed with production profile") {
				t.Errorf("ansible-lint: %v\n%s", err, out)
			}
		})
	}
}

// TestRefusals checks requests that a machine cannot fulfill, and text that would break out of its
// place in the output.
func TestRefusals(t *testing.T) {
	files := func(name string, f model.MachineFile) model.Manifests {
		return packaged(model.Package{Files: map[string]model.MachineFile{name: f}})
	}
	debs := func(name string, d model.Deb) model.Manifests {
		return packaged(model.Package{Deb: map[string]model.Deb{name: d}})
	}
	unit := func(name string, u model.Unit) model.Manifests {
		return packaged(model.Package{Units: map[string]model.Unit{name: u}})
	}
	service := func(text string) model.Unit { return model.Unit{Enabled: true, Service: value(t, text)} }
	git := func(g model.Git) model.Manifests { return playbook(model.Playbook{Git: &g, Playbook: "site.yml"}) }
	machine := func(text string) string { return `{"name": "x", "deletion": "delete", "machine": ` + text + `}` }
	nothing := packaged(model.Package{})
	for name, c := range map[string]struct {
		target  bt.Target
		code    diag.Code
		message string
	}{
		"git":                   {bt.Target{Manifests: bt.Git}, diag.UnsupportedManifests, "for Kubernetes"},
		"helm":                  {bt.Target{Manifests: bt.Chart}, diag.UnsupportedManifests, "for Kubernetes"},
		"rendered-package":      {bt.Target{Manifests: nothing, Render: true}, diag.UnsupportedManifests, "nothing to render"},
		"deb-unpinned":          {bt.Target{Manifests: debs("app", model.Deb{Version: "1", URL: "https://x.example.test/a.deb"})}, diag.Unpinned, "no digest"},
		"deb-digest-alone":      {bt.Target{Manifests: debs("app", model.Deb{Version: "1", Digest: digest})}, diag.BadSpec, "no url"},
		"deb-name":              {bt.Target{Manifests: debs("app;reboot", model.Deb{Version: "1"})}, diag.BadSpec, "no Debian package"},
		"deb-version":           {bt.Target{Manifests: debs("app", model.Deb{Version: "1\nPin: release *"})}, diag.BadSpec, "no Debian package"},
		"url-template":          {bt.Target{Manifests: debs("app", model.Deb{Version: "1", URL: "https://x.example.test/{{x}}", Digest: digest})}, diag.BadSpec, "no URL"},
		"file-unpinned":         {bt.Target{Manifests: files("/opt/x", model.MachineFile{Mode: "0644", URL: "https://x.example.test/a"})}, diag.Unpinned, "no digest"},
		"file-both":             {bt.Target{Manifests: files("/opt/x", model.MachineFile{Mode: "0644", URL: "https://x.example.test/a", Digest: digest, Content: text("")})}, diag.BadSpec, "neither"},
		"file-up":               {bt.Target{Manifests: files("/opt/../etc/passwd", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadSpec, "plain names"},
		"file-space":            {bt.Target{Manifests: files("/opt/a b", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadSpec, "plain names"},
		"file-template":         {bt.Target{Manifests: files("/opt/{{ x }}", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadSpec, "plain names"},
		"file-mode":             {bt.Target{Manifests: files("/opt/x", model.MachineFile{Mode: "a+x", Content: text("")})}, diag.BadSpec, "mode"},
		"file-directory":        {bt.Target{Manifests: files("/etc/systemd/system", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadSpec, "directory of the system"},
		"file-records":          {bt.Target{Manifests: files("/var/lib/kalypso/dev/x", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadSpec, "records"},
		"file-git":              {bt.Target{Manifests: files("/opt/.git/config", model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadFile, "repository cannot hold"},
		"file-long":             {bt.Target{Manifests: files("/opt/"+strings.Repeat("x", 256), model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadFile, "name of 256 bytes"},
		"file-deep":             {bt.Target{Manifests: files(strings.Repeat("/deeper", 500), model.MachineFile{Mode: "0644", Content: text("")})}, diag.BadFile, "path of 3500 bytes"},
		"unit-long":             {bt.Target{Manifests: unit(strings.Repeat("x", 250)+".service", service(`{"ExecStart": "x"}`))}, diag.BadFile, "name of 260 bytes"},
		"directory-long":        {bt.Target{Manifests: nothing, Service: machine(`{"directories": {"/srv/` + strings.Repeat("x", 256) + `": {"mode": "0750"}}}`)}, diag.BadFile, "name of 256 bytes"},
		"file-config":           {bt.Target{Manifests: files("/etc/app-main/platform-config.env", model.MachineFile{Mode: "0644", Content: text("")})}, diag.NameCollision, "twice"},
		"unit-newline":          {bt.Target{Manifests: unit("a.service", service(`{"ExecStart": "/bin/a\nUser=root"}`))}, diag.BadSpec, "one line"},
		"unit-continued":        {bt.Target{Manifests: unit("a.service", service(`{"ExecStart": ["/bin/a \\"]}`))}, diag.BadSpec, "one line"},
		"unit-struct":           {bt.Target{Manifests: unit("a.service", service(`{"ExecStart": {"a": 1}}`))}, diag.BadSpec, "one line"},
		"unit-directive":        {bt.Target{Manifests: unit("a.service", service(`{"Exec Start=x\n": "y"}`))}, diag.BadSpec, "no directive"},
		"unit-name":             {bt.Target{Manifests: unit("a b.service", service(`{"ExecStart": "x"}`))}, diag.BadSpec, "no name of a unit"},
		"unit-section":          {bt.Target{Manifests: unit("a.timer", service(`{"ExecStart": "x"}`))}, diag.BadSpec, "passes over"},
		"unit-template":         {bt.Target{Manifests: unit("a@.service", service(`{"ExecStart": "x"}`))}, diag.BadSpec, "only instances"},
		"unit-of-nobody":        {bt.Target{Manifests: unit("a.service", model.Unit{Enabled: true})}, diag.BadSpec, "no Debian package"},
		"user":                  {bt.Target{Manifests: nothing, Service: machine(`{"user": "a b"}`)}, diag.BadSpec, "no name of a user"},
		"group":                 {bt.Target{Manifests: nothing, Service: machine(`{"groups": ["{{ x }}"]}`)}, diag.BadSpec, "no name of a group"},
		"directory-system":      {bt.Target{Manifests: nothing, Service: machine(`{"directories": {"/etc": {"mode": "0750"}}}`)}, diag.BadSpec, "belongs to the system"},
		"directory-system-deep": {bt.Target{Manifests: nothing, Service: machine(`{"directories": {"/var/lib": {"mode": "0750"}}}`)}, diag.BadSpec, "belongs to the system"},
		"config-control":        {bt.Target{Manifests: nothing, Values: `{"A": "x\u001by"}`}, diag.BadConfigKey, "control character"},
		"config-key":            {bt.Target{Manifests: nothing, Values: `{"a.b": 1}`}, diag.BadConfigKey, "environment variable"},
		"secret":                {bt.Target{Manifests: nothing, Secrets: []backends.Secret{{Name: "A", Store: "s", Key: "k"}}}, diag.UndeliverableSecret, "does not say"},
		"secret-kubernetes": {bt.Target{Manifests: nothing, Secrets: []backends.Secret{{Name: "A", Store: "s", Key: "k"}},
			Service: `{"name": "x", "deletion": "delete", "secrets": {"externalSecret": {}}}`}, diag.UndeliverableSecret, "does not say"},
		"secret-name": {bt.Target{Manifests: nothing, Secrets: []backends.Secret{{Name: "a.b", Store: "s", Key: "k"}},
			Service: `{"name": "x", "deletion": "delete", "secrets": {"lookup": {"plugin": "file", "terms": []}}}`}, diag.UndeliverableSecret, "name of a variable"},
		"playbook-shell":   {bt.Target{Manifests: playbook(model.Playbook{Git: &model.Git{Repo: "https://x", Branch: "main"}, Playbook: "site.yml; reboot"})}, diag.BadSpec, "no path of a playbook"},
		"playbook-up":      {bt.Target{Manifests: playbook(model.Playbook{Git: &model.Git{Repo: "https://x", Branch: "main"}, Playbook: "../site.yml"})}, diag.BadSpec, "no path of a playbook"},
		"playbook-option":  {bt.Target{Manifests: git(model.Git{Repo: "https://x", Branch: "--upload-pack=x"})}, diag.UnsupportedManifests, "no name of a branch"},
		"playbook-repo":    {bt.Target{Manifests: git(model.Git{Repo: "https://x/{{ y }}", Branch: "main"})}, diag.UnsupportedManifests, "URL of a repository"},
		"playbook-semver":  {bt.Target{Manifests: git(model.Git{Repo: "https://x", Semver: "1.x"})}, diag.UnsupportedManifests, "range of versions"},
		"playbook-verify":  {bt.Target{Manifests: git(model.Git{Repo: "https://x", Tag: "v1", Verify: &model.GitVerify{Mode: "Tag", SecretRef: "k"}})}, diag.UnsupportedManifests, "no keys"},
		"playbook-missing": {bt.Target{Render: true, Manifests: git(model.Git{Repo: "https://x", Tag: "v1"}), Projection: &model.Projection{Files: []model.ProjectedFile{{Path: "sites.yml"}}}}, diag.BadSource, "no file site.yml"},
		"playbook-values":  {bt.Target{Manifests: playbook(model.Playbook{Git: &model.Git{Repo: "https://x", Branch: "main"}, Playbook: "site.yml", Vars: value(t, `{"A": 1}`)}), Values: `{"A": 2}`}, diag.BadConfigKey, "playbook's vars"},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.Name = "app/main"
			tree := bt.Build(t, ansible.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{c.target}})
			i := slices.IndexFunc(tree.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == c.code && d.Severity == diag.Error })
			if i < 0 || !strings.Contains(tree.Diagnostics[i].Message, c.message) {
				t.Fatalf("got %+v, want %s with %q", tree.Diagnostics, c.code, c.message)
			}
			if d := tree.Diagnostics[i]; len(d.Sites) == 0 && d.Path == "" || !slices.Equal(d.Assignments, []string{"dev/large/app-main"}) {
				t.Errorf("%+v points nowhere", d)
			}
			if len(tree.Folders) > 0 {
				t.Error("the assignment is emitted all the same")
			}
		})
	}
}

// TestLongNames has names of a length that the schema allows, together longer than
// a file's name can be.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("t", 230)
	tree := bt.Build(t, ansible.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
		{Name: "app/" + long + "a", Manifests: packaged(model.Package{Deb: map[string]model.Deb{"hello": {Version: "1"}}})},
		{Name: "app/" + long + "b", Manifests: packaged(model.Package{Deb: map[string]model.Deb{"bye": {Version: "1"}}})},
	}})
	if len(tree.Diagnostics) > 0 {
		t.Errorf("%+v", tree.Diagnostics)
	}
	pins := map[string]bool{}
	for name := range tree.Files {
		if _, pin, ok := strings.Cut(name, "/preferences.d/"); ok {
			pins[pin] = len(pin) <= 200
		}
	}
	if len(pins) != 2 || slices.Contains(slices.Collect(maps.Values(pins)), false) {
		t.Errorf("got the pins %v", pins)
	}
}

// TestOptions checks reconcilers and clusters that an inventory cannot contain.
func TestOptions(t *testing.T) {
	with := func(field, value string) string {
		return strings.Replace(defaults, "{", `{"`+field+`": "`+value+`", `, 1)
	}
	bad, none := bt.Value(t, `{"a-b": 1}`), bt.Value(t, `{"db": {"host": null}}`)
	for name, p := range map[string]bt.Platform{
		"interval":      {Options: strings.Replace(defaults, "15m", "5s", 1)},
		"user":          {Options: with("remoteUser", "a b")},
		"state":         {Options: strings.Replace(defaults, "/var/lib/kalypso", "/var/lib", 1)},
		"python":        {Options: strings.Replace(defaults, "/usr/bin/python3", "python; x", 1)},
		"unreadable":    {Options: `{"interval": 5}`},
		"cluster-null":  {Options: defaults, Clusters: []model.Cluster{{Name: "one", Values: &none}}},
		"cluster-key":   {Options: defaults, Clusters: []model.Cluster{{Name: "one", Values: &bad}}},
		"gitops-repo":   {Options: defaults, GitOps: &model.GitOps{Repo: "https://x/\nUser=root", Branch: "main"}},
		"gitops-none":   {Options: defaults},
		"gitops-path":   {Options: defaults, GitOps: &model.GitOps{Repo: "https://x/y", Branch: "main", Path: "a b"}},
		"gitops-branch": {Options: defaults, GitOps: &model.GitOps{Repo: "https://x/y", Branch: "{{ x }}"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, ansible.New(), p)
			if !diag.Errors(tree.Diagnostics) || len(tree.Diagnostics[0].Sites) == 0 {
				t.Errorf("got %+v", tree.Diagnostics)
			}
		})
	}
}
