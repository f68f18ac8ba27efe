package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/spelling"
)

// MayBeSkippable returns the names of gates that a policy may allow people to skip.
func MayBeSkippable() (names []string) {
	for _, k := range table {
		if k.Skip == Anybody {
			names = append(names, k.Name)
		}
	}
	return names
}

// CheckSkip returns an error if gates may not be passed over: there is no such gate, the policy
// does not allow it, or there is no reason.
func CheckSkip(p Policy, s Skip) error {
	for _, gate := range s.Gates {
		switch {
		case kindOf(gate).Name == "":
			return fmt.Errorf("there is no gate %q: %s", gate, spelling.DidYouMean(gate, MayBeSkippable()))
		case !p.skippable(gate):
			return fmt.Errorf("gate %s cannot be passed over: %s", gate, p.lets())
		}
	}
	if !s.IsZero() && strings.TrimSpace(s.Reason) == "" {
		return errors.New("pass --reason: promotion records why gates are passed over")
	}
	return nil
}

func (p Policy) skippable(gate string) bool {
	return kindOf(gate).Skip == Anybody && slices.Contains(p.Skippable, gate)
}

// lets returns which gates the policy lets be passed over.
func (p Policy) lets() string {
	may := slices.DeleteFunc(slices.Clone(p.Skippable),
		func(gate string) bool { return !p.skippable(gate) })
	if len(may) == 0 {
		return "the policy of " + p.Environment + " lets none be passed over"
	}
	slices.Sort(may)
	return "the policy of " + p.Environment + " lets only " + strings.Join(slices.Compact(may), ", ") +
		" be passed over"
}

// skip passes over the gates that it may skip, unless they have passed by themselves. To the
// other gates, it adds the reason why it does not skip them.
func skip(p Policy, s Skip, vs []Verdict) []Verdict {
	reason := printable(s.Reason)
	for i := range vs {
		v := &vs[i]
		switch {
		case v.State == Passed || !slices.Contains(s.Gates, v.Gate):
		case !p.skippable(v.Gate):
			v.Reason += " (not passed over: " + p.lets() + ")"
		case reason == "":
			v.Reason += " (not passed over: no reason is given)"
		default:
			v.State, v.Until, v.Skipped = Passed, time.Time{}, reason
			if s.By != "" {
				v.Skipped += ", by " + printable(s.By)
			}
		}
	}
	return vs
}
