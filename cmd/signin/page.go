package signin

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/event"
)

//go:embed page.html style.css
var files embed.FS

var pageTemplate = template.Must(template.ParseFS(files, "page.html"))

// page is what the page shows.
type page struct {
	Base, Next string
	// Provider names the provider. Empty: there is none.
	Provider string
	// Person and Role are those of the session. Empty: there is none.
	Person, Role string
	Until        string
	// Failed says why a sign-in failed, and Done what has happened.
	Failed, Done string
}

// show answers with the page.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, status int, p page) {
	p.Base, p.Next = h.options.Base, h.local(r.FormValue("next"))
	if h.provider != nil {
		p.Provider = h.provider.title()
	}
	p.Failed, p.Done = sentence(p.Failed), sentence(p.Done)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // the browser may be gone
}

// sentence makes a sentence of an error's text.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// style answers with the style sheet.
func style(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeFileFS(w, r, files, "style.css")
}

// refuse shows why a sign-in cannot go on, where nothing failed here.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	h.show(w, r, status, page{Failed: why})
}

// failed shows and logs why a sign-in failed.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, status int, err error) {
	h.log.Emit(event.SignInFailed, "", "error", err)
	h.show(w, r, status, page{Failed: err.Error()})
}

// showLogin shows the page, and who is signed in.
func (h *Handler) showLogin(w http.ResponseWriter, r *http.Request) {
	var p page
	if cookie, err := r.Cookie(h.cookieName(r, "session")); err == nil {
		caller, err := h.callerOf(r, cookie.Value)
		var s session
		switch {
		case errors.Is(err, access.ErrUnknown):
			h.clearCookie(w, r, "session")
			p.Done = err.Error()
		case err != nil:
			h.failed(w, r, http.StatusServiceUnavailable, err)
			return
		case h.sealer.open("session", cookie.Value, &s):
			p.Person, p.Role, p.Until = caller.Name, string(caller.Role), s.Until.UTC().Format(time.RFC3339)
		}
	} else if r.FormValue("out") != "" {
		p.Done = "you are signed out here"
	}
	h.show(w, r, http.StatusOK, p)
}

// loginByToken begins the session of somebody who has a token.
func (h *Handler) loginByToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		h.refuse(w, r, http.StatusBadRequest, "the form is not readable; send it again")
		return
	}
	secret := strings.TrimSpace(r.PostForm.Get("token"))
	caller, err := h.gate.Caller(h.from(r), secret)
	switch {
	case errors.Is(err, access.ErrUnknown):
		h.failed(w, r, http.StatusUnauthorized, access.ErrUnknown)
		return
	case errors.Is(err, access.ErrTooMany):
		w.Header().Set("Retry-After", "1")
		h.failed(w, r, http.StatusTooManyRequests, access.ErrTooMany)
		return
	case err != nil:
		w.Header().Set("Retry-After", "1")
		h.log.Emit(event.SignInFailed, "", "error", err)
		h.refuse(w, r, http.StatusServiceUnavailable, "the store does not answer; send the form again")
		return
	}
	if err := h.begin(w, r, session{Secret: secret}); err != nil {
		h.failed(w, r, http.StatusInternalServerError, err)
		return
	}
	h.log.Emit(event.SignedIn, "", "by", caller.Name, "role", string(caller.Role))
	http.Redirect(w, r, h.local(r.PostForm.Get("next")), http.StatusSeeOther)
}

// logout ends the session of a browser.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.clearCookie(w, r, "session")
	h.clearCookie(w, r, "flow")
	http.Redirect(w, r, h.options.Base+"/login?out=1", http.StatusSeeOther)
}
