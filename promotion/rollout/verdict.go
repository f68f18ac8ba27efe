package rollout

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Policy is how much of a rollout must be done.
type Policy struct {
	// Min is how much must be healthy: a percentage, such as "99.5%", or a number of
	// clusters; "" for all. A number above what is wanted is never reached.
	Min string
	// MaxFailed is how many clusters may have failed; less than 0 is 0.
	MaxFailed int
	// AllowEmpty passes what wants nothing.
	AllowEmpty bool
}

// Verdict is what a policy says of a rollout.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Pending Verdict = "pending" // it may pass without anybody doing anything
	Blocked Verdict = "blocked" // somebody has to mend something
)

// minForm is what Min may be. It bounds the length, because a policy is text.
var minForm = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,64})?%$|^[0-9]{1,9}$`)

// parseMin returns how much of a whole a Min is, or else how many.
func parseMin(min string) (share *big.Rat, number int64, err error) {
	if min == "" {
		min = "100%"
	}
	if !minForm.MatchString(min) {
		return nil, 0, fmt.Errorf("min %q is neither a percentage, such as 99.5%%, nor a number", min)
	}
	percent, isShare := strings.CutSuffix(min, "%")
	value, _ := new(big.Rat).SetString(percent) // minForm holds
	if !isShare {
		return nil, value.Num().Int64(), nil
	}
	hundred := big.NewRat(100, 1)
	if value.Cmp(hundred) > 0 {
		return nil, 0, fmt.Errorf("min %q is more than all", min)
	}
	return value.Quo(value, hundred), 0, nil
}

// Verdict reports whether a policy is satisfied, and why, in one line. It passes if as
// much is healthy as the policy wants, of what is wanted and not excluded, and no more
// has failed than it allows; then, also where min is 0, somebody must have reported.
// A rollout of which nothing is known is pending. So is one of which all is
// excluded, and one of nothing at all, unless the policy allows it: nothing wanted is
// no evidence. A policy that cannot be read blocks.
//
// It is of this moment. Who wants that a success stays one, whatever happens later to
// a node, keeps the verdict.
func (c *Counts) Verdict(p Policy) (Verdict, string) {
	share, number, err := parseMin(p.Min)
	if err != nil {
		return Blocked, err.Error()
	}
	of := int64(c.Wanted - c.Excluded)
	enough := int64(c.Healthy) >= number
	if share != nil {
		want := new(big.Rat).Mul(share, new(big.Rat).SetInt64(of))
		enough = new(big.Rat).SetInt64(int64(c.Healthy)).Cmp(want) >= 0
	}
	switch text := c.Tally.String(); {
	case c.Failed > max(p.MaxFailed, 0):
		return Blocked, fmt.Sprintf("%s; at most %d may fail", text, max(p.MaxFailed, 0))
	case c.Wanted == 0 && p.AllowEmpty:
		return Passed, text
	case c.Wanted == 0:
		return Pending, Empty
	case c.Unknown == c.Wanted:
		return Pending, text + "; nobody has reported"
	case of == 0:
		return Pending, text + "; no cluster is reachable"
	case !enough && share != nil:
		return Pending, fmt.Sprintf("%s; %s must be ok", text, percentOf(p.Min))
	case !enough:
		return Pending, fmt.Sprintf("%s; %d must be ok", text, number)
	default:
		return Passed, text
	}
}

// Empty is why nothing wanted is no evidence.
const Empty = "nothing is assigned, which proves nothing; gates.rollout.allowEmpty lets such a commit count"

func percentOf(min string) string {
	if min == "" {
		return "all"
	}
	return min
}
