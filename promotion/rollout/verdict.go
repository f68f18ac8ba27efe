package rollout

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Policy is the part of a rollout that must be healthy.
type Policy struct {
	// Min is the part that must be healthy, as a percentage, such as "99.5%", or as a number of
	// clusters. "" means all clusters. A number above Wanted is never reached.
	Min string
	// MaxFailed is the number of clusters that may fail; less than 0 is 0.
	MaxFailed int
	// AllowEmpty passes a rollout without assignments.
	AllowEmpty bool
}

// Verdict is the result of a policy.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Pending Verdict = "pending" // it may pass later by itself
	Blocked Verdict = "blocked" // somebody has to make a repair
)

// minForm is the form of Min. It bounds the length, because a policy is text.
var minForm = lazyregexp.New(`^[0-9]{1,9}(\.[0-9]{1,64})?%$|^[0-9]{1,9}$`)

// parseMin returns the share of a Min, or else its number.
func parseMin(min string) (share *big.Rat, number int64, err error) {
	if min == "" {
		min = "100%"
	}
	if !minForm.MatchString(min) {
		return nil, 0, fmt.Errorf("min %q is neither a percentage, such as 99.5%%, nor a number", min)
	}
	percent, isShare := strings.CutSuffix(min, "%")
	value, _ := new(big.Rat).SetString(percent) // minForm matches
	if !isShare {
		return nil, value.Num().Int64(), nil
	}
	hundred := big.NewRat(100, 1)
	if value.Cmp(hundred) > 0 {
		return nil, 0, fmt.Errorf("min %q is more than all", min)
	}
	return value.Quo(value, hundred), 0, nil
}

// Verdict returns whether a policy is satisfied, and the reason on one line. It passes if enough
// of the wanted clusters are healthy, without excluded ones, and no more have failed than
// allowed. It requires at least one report, even if min is 0. A rollout is pending if it has no
// reports or if all clusters are excluded. An empty rollout is pending, too, unless the policy
// allows it. An invalid policy blocks.
//
// It is the verdict of this moment. Callers must keep a success if it is to last.
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

// Empty is the reason for the verdict on a rollout without assignments.
const Empty = "nothing is assigned, which proves nothing; gates.rollout.allowEmpty lets such a " +
	"commit count"

func percentOf(min string) string {
	if min == "" {
		return "all"
	}
	return min
}
