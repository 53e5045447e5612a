package console

import (
	"net/http"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// samplesPath is where the button of the empty overview asks for sample data.
const samplesPath = "/samples"

// Samples is the address that fills the store. Empty: nobody has said how, or the viewer may not.
func (s *screen) Samples() string {
	if s.visit.console.options.Samples == nil || s.visit.viewer.Role != string(access.RoleAdmin) {
		return ""
	}
	return s.visit.console.url(samplesPath)
}

// fill fills the store with sample data, and shows the overview.
func (c *Console) fill(w http.ResponseWriter, r *http.Request) {
	v, err := c.visit(r, page{name: "samples", title: "Sample data"})
	if err == nil && v.viewer.Role != string(access.RoleAdmin) {
		err = &httpapi.Problem{Status: http.StatusForbidden, Title: "Not allowed", Why: "the role " + v.viewer.Role + " may not fill the store with sample data", Do: "ask an admin"}
	}
	if err == nil {
		err = c.options.Samples(r.Context())
	}
	if err != nil {
		c.refuse(w, r, v, err)
		return
	}
	http.Redirect(w, r, c.url("/"), http.StatusSeeOther)
}
