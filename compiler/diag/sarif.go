package diag

import (
	"io"

	"github.com/owenrumney/go-sarif/v3/pkg/report"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// WriteSARIF writes resolved diagnostics as SARIF 2.1.0, for code scanning
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0).
func WriteSARIF(w io.Writer, ds []Diagnostic, version string) error {
	run := sarif.NewRunWithInformationURI("kalypso", "https://github.com/kalypso-io/kalypso")
	run.Tool.Driver.WithVersion(version)
	for _, d := range ds {
		rule := run.AddRule(string(d.Code))
		if e, ok := Explain(d.Code); ok {
			rule.WithShortDescription(sarif.NewMultiformatMessageString().WithText(e.Title))
			rule.WithFullDescription(sarif.NewMultiformatMessageString().WithText(e.Text))
		}
		message := d.Message + d.scopeText()
		if more := d.more(nil); more != "" {
			message += "\n" + more
		}
		if d.Hint != "" {
			message += "\nhint: " + d.Hint
		}
		result := run.CreateResultForRule(string(d.Code)).WithLevel(string(d.Severity)).
			WithMessage(sarif.NewTextMessage(message))
		for i, p := range d.positions() {
			at := sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().
				WithArtifactLocation(sarif.NewSimpleArtifactLocation(p.File)).
				WithRegion(sarif.NewRegion().WithStartLine(p.Line).WithStartColumn(p.Column)))
			if i == 0 {
				result.AddLocation(at)
			} else {
				result.AddRelatedLocation(at)
			}
		}
	}
	r := report.NewV210Report()
	r.AddRun(run)
	return r.PrettyWrite(w)
}
