package access

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Role is what somebody may do. Each of Viewer, Operator and Admin may do what the one before
// may.
type Role string

// The roles.
const (
	Cluster  Role = "cluster"  // reports about one cluster
	Enroll   Role = "enroll"   // gets tokens for clusters
	Viewer   Role = "viewer"   // sees everything of its environment
	Operator Role = "operator" // reports about any cluster of its environment
	Admin    Role = "admin"    // makes tokens
)

var ranks = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return r == Cluster || r == Enroll || ranks[r] > 0 }

// Identity is who asks.
type Identity struct {
	Name    string  // for the audit
	Grants  []Grant // what it may do; they add up
	Cluster string  // of role Cluster
	Session bool    // it has signed in, and can sign out
}

// Grant is a role in an environment, or in all.
type Grant struct {
	Role        Role
	Environment string // "" for all
}

// String returns the role, with its environment where it is of one.
func (g Grant) String() string {
	if g.Environment == "" {
		return string(g.Role)
	}
	return string(g.Role) + " of " + g.Environment
}

func (g Grant) may(r Role) bool { return g.Role == r || ranks[r] > 0 && ranks[g.Role] >= ranks[r] }

// May reports whether somebody has a role in any environment, or one that may do more.
func (i *Identity) May(r Role) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return g.may(r) })
}

// Scope returns the environments in which somebody has a role, or one that may do more.
func (i *Identity) Scope(r Role) state.Environments {
	out := state.Environments{}
	for _, g := range i.Grants {
		switch {
		case g.may(r) && g.Environment == "":
			return nil
		case g.may(r) && !slices.Contains(out, g.Environment):
			out = append(out, g.Environment)
		}
	}
	slices.Sort(out)
	return out
}

// MayIn reports whether somebody has a role in an environment, in all for "".
func (i *Identity) MayIn(r Role, environment string) bool { return i.Scope(r).Has(environment) }

// Audits reports whether somebody may see who did what, which is of all environments.
func (i *Identity) Audits() bool { return i.Scope(Admin) == nil }

// Sees reports whether somebody may see an environment.
func (i *Identity) Sees(environment string) bool { return i.MayIn(Viewer, environment) }

// Roles says what somebody may do, for people.
func (i *Identity) Roles() string {
	var all []string
	for _, g := range i.Grants {
		all = append(all, g.String())
	}
	return strings.Join(all, ", ")
}

type key struct{}

// With returns a context that has who asks.
func With(ctx context.Context, i *Identity) context.Context { return context.WithValue(ctx, key{}, i) }

// From returns who asks; nil where nobody knows.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(key{}).(*Identity)
	return i
}

// Local is who asks where nobody has to say who they are: on this machine alone.
func Local() *Identity { return &Identity{Name: "local", Grants: []Grant{{Role: Admin}}} }
