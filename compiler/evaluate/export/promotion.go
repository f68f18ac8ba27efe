package export

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// policies exports the policies by which commits reach environments.
type policies struct {
	*reader
	selectors *selectors
	contracts *contracts
}

// promotion exports the policy of promotion of an environment. value has the fields of v that
// are data. Errors make the environment invalid.
func (x *policies) promotion(v cue.Value, value model.Value, ref model.Ref) model.Promotion {
	var fields struct {
		After     []string                 `json:"after"`
		Require   string                   `json:"require"`
		Advance   advance                  `json:"advance"`
		Own       ownChanges               `json:"ownChanges"`
		Source    *model.EnvironmentSource `json:"source"`
		Promotion struct {
			Write       model.Write `json:"write"`
			AutoMerge   bool        `json:"autoMerge"`
			MergeMethod string      `json:"mergeMethod"`
			Labels      []string    `json:"labels"`
			Reviewers   []string    `json:"reviewers"`
			Skippable   []string    `json:"skippable"`
			Allow       []string    `json:"allow"`
		} `json:"promotion"`
	}
	decode(value, &fields)
	how := fields.Promotion
	return model.Promotion{
		After:   fields.After,
		Any:     fields.Require == "any",
		Advance: fields.Advance.way,
		Every:   fields.Advance.every,
		Gates:   x.gates(v, ref),
		Rings:   x.rings(v, ref),
		Source:  fields.Source,

		OwnChanges: model.OwnChanges(fields.Own),

		Write:       how.Write,
		AutoMerge:   how.AutoMerge,
		MergeMethod: how.MergeMethod,
		Labels:      how.Labels,
		Reviewers:   how.Reviewers,
		Skippable:   how.Skippable,
		AllowErrors: slices.Contains(how.Allow, model.GateErrors),
		AllowKept:   slices.Contains(how.Allow, model.GateKept),
	}
}

// rings exports the rings of an environment.
func (x *policies) rings(v cue.Value, ref model.Ref) []model.Ring {
	var out []model.Ring
	x.elements(v, ref, "rings", func(of cue.Value, at model.Ref) {
		var r struct {
			Name  string   `json:"name"`
			After []string `json:"after"`
		}
		if !x.decode(&r, of, at, "select", "gates") {
			return
		}
		selects, _ := x.selectors.selector(cuevalue.Field(of, "select"), at.At("select"), true)
		out = append(out,
			model.Ring{Name: r.Name, Select: selects, After: r.After, Gates: x.gates(of, at)})
	})
	return out
}

// gates exports the gates of an environment or a ring.
func (x *policies) gates(of cue.Value, ref model.Ref) model.Gates {
	v := cuevalue.Field(of, "gates")
	if !v.Exists() {
		return model.Gates{}
	}
	ref = ref.At("gates")
	x.note(v, ref)
	value, ok := x.entity(v, ref, "policy")
	if !ok {
		return model.Gates{}
	}
	var fields struct {
		Rollout *struct {
			Source      string             `json:"source"`
			Min         string             `json:"min"`
			MaxFailed   int                `json:"maxFailed"`
			Timeout     span               `json:"timeout"`
			StaleAfter  span               `json:"staleAfter"`
			Unreachable string             `json:"unreachable"`
			AllowEmpty  bool               `json:"allowEmpty"`
			Status      []model.StatusGate `json:"status"`
			By          []string           `json:"by"`
		} `json:"rollout"`
		Status []model.StatusGate `json:"status"`
		Soak   *struct {
			For         span   `json:"for"`
			Environment string `json:"environment"`
			OnFailure   string `json:"onFailure"`
		} `json:"soak"`
		Approvals *approvals     `json:"approvals"`
		Windows   []model.Window `json:"windows"`
		HTTP      []struct {
			Name      string `json:"name"`
			URL       string `json:"url"`
			Timeout   span   `json:"timeout"`
			TokenFrom string `json:"tokenFrom"`
		} `json:"http"`
		Budget *model.BudgetGate `json:"budget"`
		Own    struct {
			Approvals *approvals `json:"approvals"`
		} `json:"own"`
	}
	decode(value, &fields)
	g := model.Gates{
		Status:    fields.Status,
		Approvals: (*model.ApprovalsGate)(fields.Approvals),
		Windows:   fields.Windows,
		Policy:    x.policies(v, ref),
		Budget:    fields.Budget,

		OwnApprovals: (*model.ApprovalsGate)(fields.Own.Approvals),
	}
	if r := fields.Rollout; r != nil {
		g.Rollout = &model.RolloutGate{
			Source: r.Source, Min: r.Min, MaxFailed: r.MaxFailed,
			Timeout: time.Duration(r.Timeout), StaleAfter: time.Duration(r.StaleAfter),
			Exclude:    r.Unreachable == "exclude",
			AllowEmpty: r.AllowEmpty, Status: r.Status, By: r.By,
		}
	}
	if s := fields.Soak; s != nil {
		g.Soak = &model.SoakGate{For: time.Duration(s.For), Environment: s.Environment,
			Restart: s.OnFailure == "restart"}
	}
	for _, h := range fields.HTTP {
		g.HTTP = append(g.HTTP, model.HTTPGate{Name: h.Name, URL: h.URL,
			Timeout: time.Duration(h.Timeout), TokenFrom: h.TokenFrom})
	}
	return g
}

// policies exports the gates that are constraints.
func (x *policies) policies(gates cue.Value, ref model.Ref) []model.PolicyGate {
	var out []model.PolicyGate
	x.elements(gates, ref, "policy", func(of cue.Value, at model.Ref) {
		var p struct {
			Name string `json:"name"`
			Hint string `json:"hint"`
		}
		if !x.decode(&p, of, at, "change") {
			return
		}
		x.contracts.checkChange(cuevalue.Field(of, "change"), at.At("change"))
		if c := x.contracts.contract(cuevalue.Field(of, "change"), at.At("change"), ""); c != nil {
			out = append(out, model.PolicyGate{Name: p.Name, Change: c.Expr, Hint: p.Hint})
		}
	})
	return out
}

// advance is a way to choose a candidate: its name, or a struct.
type advance struct {
	way   model.Advance
	every time.Duration
}

// UnmarshalJSON reads either the name of a way or a batch with its span.
func (a *advance) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &a.way); err == nil {
		return nil
	}
	var fields struct {
		Batch struct {
			Every span `json:"every"`
		} `json:"batch"`
	}
	err := json.Unmarshal(data, &fields)
	a.way, a.every = model.Batch, time.Duration(fields.Batch.Every)
	return err
}

// ownChanges is the field ownChanges: the name of a default, or a struct.
type ownChanges model.OwnChanges

// UnmarshalJSON reads either the name of a default or a struct with default and atOnce.
func (o *ownChanges) UnmarshalJSON(data []byte) error {
	var fields struct {
		Default string   `json:"default"`
		AtOnce  []string `json:"atOnce"`
	}
	if json.Unmarshal(data, &fields.Default) != nil {
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
	}
	*o = ownChanges{Written: true, AtOnce: fields.Default == "at-once",
		Clusters: slices.Contains(fields.AtOnce, "clusters")}
	return nil
}

// span is a time span in the syntax of the schema's #Span.
type span time.Duration

// UnmarshalText reads a span. A span that exceeds the maximum of a time.Duration, about 292
// years, becomes that maximum.
func (s *span) UnmarshalText(text []byte) error {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute,
		's': time.Second}
	const longest = time.Duration(math.MaxInt64)
	*s = 0
	for begin, i := 0, 0; i < len(text); i++ {
		unit, isUnit := units[text[i]]
		if !isUnit {
			continue
		}
		n, err := strconv.ParseInt(string(text[begin:i]), 10, 64)
		// the schema has checked that n consists of digits
		if err != nil || n > int64((longest-time.Duration(*s))/unit) {
			*s = span(longest)
			return nil
		}
		*s += span(n) * span(unit)
		begin = i + 1
	}
	return nil
}

// approvals are a number, or a struct.
type approvals model.ApprovalsGate

// UnmarshalJSON reads a number of approvals, or the fields of model.ApprovalsGate.
func (a *approvals) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &a.Count); err == nil {
		return nil
	}
	return json.Unmarshal(data, (*model.ApprovalsGate)(a))
}
