package people

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/internal/strictyaml"
)

// Rules assign roles to people and CI jobs.
type Rules struct {
	// Groups give a person the roles of all groups that the person is in.
	Groups []Group `yaml:"groups"`
	// CI gives a job the roles of all rules that match its token.
	CI []CI `yaml:"ci"`
}

// Group gives the members of a group a role.
type Group struct {
	Group       string      `yaml:"group"`
	Role        access.Role `yaml:"role"`
	Environment string      `yaml:"environment"` // the environment of the role; "" means all
}

// CI gives a role to the jobs of a CI system whose tokens have all the claims.
type CI struct {
	Issuer      string            `yaml:"issuer"`
	Claims      map[string]string `yaml:"claims"`
	Role        access.Role       `yaml:"role"`
	Environment string            `yaml:"environment"`
}

// Parse reads rules, as YAML or JSON.
func Parse(data []byte) (*Rules, error) {
	rules := &Rules{}
	if err := strictyaml.Decode(data, rules); err != nil {
		return nil, err
	}
	if len(rules.Groups) == 0 && len(rules.CI) == 0 {
		return nil, errors.New("there is no rule, and nobody would get in: give groups, ci, or both")
	}
	for i, g := range rules.Groups {
		if g.Group == "" {
			return nil, fmt.Errorf("groups: entry %d names no group", i+1)
		}
		if err := checkRole(g.Role); err != nil {
			return nil, fmt.Errorf("groups: %s: %w", g.Group, err)
		}
	}
	for i := range rules.CI {
		c := &rules.CI[i]
		c.Issuer = trimIssuer(c.Issuer)
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("ci: entry %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func checkRole(r access.Role) error {
	if r != access.Viewer && r != access.Operator && r != access.Admin {
		return fmt.Errorf("there is no role %q for people and CI: there are viewer, operator and admin",
			r)
	}
	return nil
}

// shared are issuers whose tokens anybody can get. For each it lists claims, and a rule must
// require one of them, because the other claims do not identify the owner of a job.
var shared = map[string][]string{
	"https://token.actions.githubusercontent.com": {"repository", "repository_id", "repository_owner",
		"repository_owner_id", "sub"},
	"https://gitlab.com": {"project_path", "project_id", "namespace_path", "namespace_id", "sub"},
}

func (c *CI) check() error {
	if err := checkIssuer(c.Issuer); err != nil {
		return err
	}
	if err := checkRole(c.Role); err != nil {
		return err
	}
	if len(c.Claims) == 0 {
		return errors.New("it has no claims, and would let in every job of " + c.Issuer)
	}
	if whose := shared[c.Issuer]; whose != nil &&
		!slices.ContainsFunc(whose, func(name string) bool { return c.Claims[name] != "" }) {
		return fmt.Errorf("its claims do not say whose jobs it lets in, and everybody has jobs at %s: "+
			"add one of %v", c.Issuer, whose)
	}
	return nil
}

// checkIssuer returns an error if an address cannot belong to an issuer. The keys must come from
// the issuer itself, so the address must use https, except on this machine.
func checkIssuer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%q is no address of an issuer, such as https://login.example.com", address)
	}
	if u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return fmt.Errorf("the issuer %s: anybody on the way could give keys: use https", address)
	}
	return nil
}

// identityOf returns the identity of a person in some groups, or nil if the groups give no role.
func (r *Rules) identityOf(name string, groups []string) *access.Identity {
	var all []access.Grant
	for _, g := range r.Groups {
		if slices.Contains(groups, g.Group) {
			all = append(all, access.Grant{Role: g.Role, Environment: g.Environment})
		}
	}
	if all == nil {
		return nil
	}
	return &access.Identity{Name: name, Grants: all, Session: true}
}

// namedGroups returns the groups that a rule names.
func (r *Rules) namedGroups(groups []string) []string {
	var out []string
	for _, g := range r.Groups {
		if slices.Contains(groups, g.Group) && !slices.Contains(out, g.Group) {
			out = append(out, g.Group)
		}
	}
	return out
}

// job returns the identity of a job whose token has some claims, or nil if no rule matches.
func (r *Rules) job(issuer, name string, claims map[string]any) *access.Identity {
	var all []access.Grant
	for _, c := range r.CI {
		if c.Issuer == issuer && c.holds(claims) {
			all = append(all, access.Grant{Role: c.Role, Environment: c.Environment})
		}
	}
	if all == nil {
		return nil
	}
	return &access.Identity{Name: name, Grants: all}
}

// holds reports whether a token has all the claims. A claim with several values matches each of
// them.
func (c *CI) holds(claims map[string]any) bool {
	for name, wanted := range c.Claims {
		if !slices.Contains(valuesOf(claims[name]), wanted) {
			return false
		}
	}
	return true
}

// valuesOf returns the values of a claim, as text.
func valuesOf(claim any) []string {
	switch v := claim.(type) {
	case nil:
		return nil
	case []any:
		var out []string
		for _, one := range v {
			if _, nested := one.([]any); !nested {
				out = append(out, valuesOf(one)...)
			}
		}
		return out
	case map[string]any:
		return nil
	}
	return []string{fmt.Sprint(claim)}
}

// File is a file of rules. It reads the file again when it changes. Any number of goroutines may
// use it.
type File struct {
	path    string
	problem func(error)

	mu      sync.Mutex
	changed time.Time
	rules   *Rules
	said    string          // the last reported error
	absent  map[string]bool // reported environments of the rules that the platform lacks
}

// Open reads a file of rules. If a later version is invalid, File calls problem once, and the rules
// before it stay valid.
func Open(path string, problem func(error)) (*File, error) {
	f := &File{path: path, problem: problem, absent: map[string]bool{}}
	return f, f.read()
}

// read reads the file if it has changed, or if it was invalid.
func (f *File) read() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.rules != nil && info.ModTime().Equal(f.changed) && f.said == "" {
		return nil
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	rules, err := Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.rules, f.changed = rules, info.ModTime()
	return nil
}

// Rules returns the rules as they are now.
func (f *File) Rules() *Rules {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := ""
	if err := f.read(); err != nil {
		if text = err.Error(); text != f.said {
			f.problem(fmt.Errorf("the rules of before hold: %w", err))
		}
	}
	f.said = text
	return f.rules
}

// followEvery is how often the rules are read if no request needs them.
const followEvery = 30 * time.Second

// Follow reads the rules until the context ends. It therefore reports an error in the rules even if
// no request needs them. environments returns the known environments of the platform.
func (f *File) Follow(ctx context.Context, environments func(context.Context) ([]string, error)) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		rules := f.Rules()
		if known, err := environments(ctx); err == nil {
			f.warn(rules, known)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// warn reports, once, the environments of the rules that the platform lacks, if its environments
// are known.
func (f *File) warn(rules *Rules, known []string) {
	if len(known) == 0 {
		return
	}
	of := map[string]bool{}
	for _, g := range rules.Groups {
		of[g.Environment] = true
	}
	for _, c := range rules.CI {
		of[c.Environment] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		absent := access.Absent(name, known)
		if absent != "" && !f.absent[name] {
			f.problem(fmt.Errorf("%s: warning: %s", f.path, absent))
		}
		f.absent[name] = absent != ""
	}
}
