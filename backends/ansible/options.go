package ansible

import (
	"fmt"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// options are the fields of #Ansible.
type options struct {
	RemoteUser        string
	Serial            *model.Value // an int or a percentage
	MaxFailPercentage int
	Interval          string
	Python            string
	StateDirectory    string
}

// optionsOf returns the reconciler's fields, each of a form that can stand in a
// playbook and in a unit of systemd.
func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if err := s.Decode(&o); err != nil {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec,
			"the reconciler's fields cannot be read: "+err.Error()).At(s.Ref, "")}
	}
	var ds []diag.Diagnostic
	refuse := func(field, format string, args ...any) {
		path := "ansible." + field
		ds = append(ds, diag.New(diag.BadSpec, fmt.Sprintf(format, args...)).On(path).At(s.Ref.At(path), ""))
	}
	if d, err := time.ParseDuration(o.Interval); err != nil || d < time.Minute {
		refuse("interval", "%q is no time between two runs: the shortest is 1m", o.Interval)
	}
	if o.RemoteUser != "" && !userName.MatchString(o.RemoteUser) {
		refuse("remoteUser", "%q is no name of a user", o.RemoteUser)
	}
	for _, p := range []struct{ field, path string }{{"python", o.Python}, {"stateDirectory", o.StateDirectory}} {
		if !machinePath.MatchString(p.path) {
			refuse(p.field, "%q is no absolute path of plain names", p.path)
		}
	}
	if systemDirectory(o.StateDirectory) {
		refuse("stateDirectory", "%s belongs to the system, and not to kalypso alone", o.StateDirectory)
	}
	return o, ds
}

// become says whether tasks need the rights of root that the login does not have.
func (o options) become() bool { return o.RemoteUser != "root" }

// state is the folder on a host that holds what kalypso knows of an environment's
// cluster type there.
func (o options) state(environment, clusterType string) string {
	return o.StateDirectory + "/" + environment + "/" + clusterType
}
