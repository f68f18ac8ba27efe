package ansible

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// playbookToRun is a playbook that the host runs on itself. It is from a repository at a
// revision, or its files are in the folder.
type playbookToRun struct {
	Repo      string   `yaml:"repo,omitempty"`
	Revision  string   `yaml:"revision,omitempty"`
	Files     []string `yaml:"files,omitempty"` // of the folder's playbook, by path in it
	Directory string   `yaml:"directory"`       // on the host
	Playbook  string   `yaml:"playbook"`        // in the directory
	Values    string   `yaml:"host_values"`     // the file with the values of only the host
	// the files with the variables, later ones first in rank
	Vars []string `yaml:"vars"`
}

// playbook adds a playbook with its variables, in files that only root can read. The variables are
// the application's, the platform's values, the values of only the host, and secrets.
func (f *folder) playbook(p *model.Playbook) {
	ref := f.manifest("ansible")
	run := &playbookToRun{
		Playbook: p.Playbook,
		Directory: f.options.state(f.assignment.Environment, f.assignment.ClusterType) + "/playbooks/" +
			f.assignment.DeploymentTarget,
		Values: f.etc("host-values.yml"),
	}
	if !relative.MatchString(p.Playbook) {
		f.report(diag.BadSpec, ref.At("playbook"), "%q is no path of a playbook", p.Playbook)
		return
	}
	if f.assignment.Render {
		f.playbookFiles(run, ref)
	} else {
		f.checkout(run, p.Git, ref.At("git"))
	}
	f.thing(fileThing, run.Directory, ref)
	vars := f.etc("variables.yml")
	f.write(source(vars), ansibleYAML(f.variables(p.Vars, ref.At("vars"))), false)
	f.file(machineFile{Path: vars, Source: source(vars), Owner: "root", Group: "root", Mode: "0600"},
		ref)
	f.thing(fileThing, run.Values, ref)
	run.Vars = []string{vars, run.Values}
	if f.spec.Secrets != nil {
		run.Vars = append(run.Vars, f.spec.Secrets.Path)
	}
	f.spec.Playbook = run
}

// checkout sets the repository and the revision that the host checks out. It refuses options that
// git and Ansible do not support there.
func (f *folder) checkout(run *playbookToRun, g *model.Git, ref model.Ref) {
	refuse := func(field, message, hint string) {
		f.ds = append(f.ds,
			delivery.Unsupported(f.assignment, "ansible.git."+field, message).Hinting(hint))
	}
	if g == nil {
		f.ds = append(f.ds,
			delivery.Unsupported(f.assignment, "ansible", "the playbook has no repository"))
		return
	}
	run.Repo, run.Revision = g.Repo, g.Commit+g.Tag+g.Branch
	switch {
	case !repository.MatchString(g.Repo):
		refuse("repo", g.Repo+" has characters that do not belong in the URL of a repository",
			"write them with % and their code")
	case g.Semver != "":
		refuse("semver", "a host checks out a branch, a tag or a commit, and no range of versions",
			"name a tag, or set render: true, so that kalypso.lock pins the newest one")
	case !revision.MatchString(run.Revision) || strings.Contains(run.Revision, ".."):
		refuse("branch", run.Revision+" is no name of a branch or tag", "")
	}
	if g.Verify != nil {
		refuse("verify", "hosts have no keys to verify a tag with", "pin the repository by commit")
	}
	if g.SecretRef != "" {
		at := ref.At("secretRef")
		f.report(diag.NoEffect, at, "secretRef names a secret on a Kubernetes cluster: a host uses the "+
			"credentials that git finds there").
			hint("give the hosts an SSH key or a credential helper, and remove secretRef")
	}
}

// playbookFiles adds the files of a playbook that is rendered.
func (f *folder) playbookFiles(run *playbookToRun, ref model.Ref) {
	if f.assignment.Projection == nil || len(f.assignment.Projection.Files) == 0 {
		f.ds = append(f.ds,
			delivery.Unsupported(f.assignment, "ansible", "the playbook's repository has no files"))
		return
	}
	for _, file := range f.assignment.Projection.Files {
		f.write("playbook/"+file.Path, file.Data, file.Executable)
		run.Files = append(run.Files, file.Path)
	}
	if !slices.Contains(run.Files, run.Playbook) {
		f.ds = append(f.ds, diag.New(diag.BadSource, "the repository has no file "+run.Playbook).
			On("manifests.ansible.playbook").At(ref.At("playbook"),
			"").Hinting(spelling.DidYouMean(run.Playbook, run.Files)))
	}
}

// variables returns the application's variables together with the platform's values, sorted
// by name.
func (f *folder) variables(own *model.Value, ref model.Ref) yaml.Mapping {
	var out yaml.Mapping
	if own != nil {
		for _, v := range own.Fields() {
			out = append(out, yaml.Entry{Key: v.Name, Value: unsafe(v.Value)})
		}
	}
	for _, v := range f.assignment.Values.Fields() {
		taken := false
		if own != nil {
			_, taken = own.Lookup(v.Name)
		}
		switch {
		case !variable.MatchString(v.Name):
			f.ds = append(f.ds, kubernetes.BadKey(v.Name,
				"cannot be the name of a variable of a playbook", "use letters, digits and '_'"))
		case taken:
			f.ds = append(f.ds, kubernetes.BadKey(v.Name,
				"has the name of a variable that the playbook's vars give", "rename one of them").
				At(ref.At(model.Label(v.Name)), "the application's variable"))
		}
		out = append(out, yaml.Entry{Key: v.Name, Value: unsafe(v.Value)})
	}
	slices.SortFunc(out, func(a, b yaml.Entry) int { return strings.Compare(a.Key, b.Key) })
	return out
}
