package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

const (
	// maxForm is the largest form, in bytes.
	maxForm = 2 << 20
	// typedAbove is the number of jobs above which a person types the number to confirm.
	typedAbove = 1000
)

// askAct answers with the dialog of an act.
func (c *Console) askAct(w http.ResponseWriter, r *http.Request) {
	v, d, ok := c.dialogOf(w, r, r.URL.Query())
	if !ok {
		return
	}
	c.openDialog(w, r, v, d)
}

// askActOn is askAct with the values in the body: those of many jobs are too long for a URL.
func (c *Console) askActOn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	if v, d, ok := c.dialogOf(w, r, r.PostForm); ok {
		c.openDialog(w, r, v, d)
	}
}

// openDialog sends a dialog for the first time.
func (c *Console) openDialog(w http.ResponseWriter, r *http.Request, v *visit, d *dialog) {
	for _, f := range d.Act.fields {
		if f.value != "" && !d.Values.Has(f.name) {
			d.Values.Set(f.name, f.value)
		}
	}
	if d.Act.fill != nil && d.Problem == nil {
		ctx, stop := context.WithTimeout(r.Context(), timeout)
		defer stop()
		if err := d.Act.fill(ctx, v, d.Values); err != nil {
			d.Problem = problemOf(err)
		}
	}
	d.Values.Set("act_id", sluice.NewID().String())
	c.answerDialog(w, d)
}

// sameAct answers with what does the same elsewhere as a dialog with what a person has filled in so far.
func (c *Console) sameAct(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	a, is := c.acts[r.PathValue("act")]
	if !is {
		http.NotFound(w, r)
		return
	}
	d := &dialog{Act: &a, Values: r.PostForm}
	d.sayElsewhere(c)
	c.answerWith(w, "elsewhere", d)
}

// sayElsewhere sets what does the same as the dialog.
func (d *dialog) sayElsewhere(c *Console) {
	d.Command = d.Act.commandOf(d.Values)
	method, path, query, body, err := d.Act.request(c.api, d.Values)
	if err != nil {
		d.NoCall = problemOf(err).Why
		return
	}
	d.Call = curl(method, path, query, body)
}

// dialogOf begins the answer to a request about an act.
func (c *Console) dialogOf(w http.ResponseWriter, r *http.Request, values url.Values) (*visit, *dialog, bool) {
	ctx, stop := context.WithTimeout(r.Context(), timeout)
	defer stop()
	v, err := c.visit(r.WithContext(ctx), page{name: "overview"})
	v.patience = timeout
	a, is := c.acts[r.PathValue("act")]
	d := &dialog{Act: &a, Values: values, Production: c.production()}
	switch {
	case err != nil:
		d.Problem = problemOf(err)
	case !is:
		http.NotFound(w, r)
		return nil, nil, false
	case a.preview != nil:
		found, counted := countedBefore(values)
		if !counted {
			found, err = a.preview(ctx, v, values)
		}
		if err != nil {
			d.Problem = problemOf(err)
			break
		}
		d.Preview = &found
		values.Set("counted", strconv.Itoa(found.Count))
		values.Set("counted_more", strconv.FormatBool(found.More))
		if found.More || found.Count > typedAbove || d.Production && a.danger {
			d.Confirm = strconv.Itoa(found.Count)
		}
	}
	return v, d, true
}

// countedBefore is the preview that the person has seen. The jobs may have changed since, but the number that the person
// confirms must be the one on the screen.
func countedBefore(values url.Values) (preview, bool) {
	n, err := strconv.Atoi(values.Get("counted"))
	return preview{Count: n, More: values.Get("counted_more") == "true", Samples: nil}, err == nil
}

// answerDialog sends a dialog, with what does the same elsewhere.
func (c *Console) answerDialog(w http.ResponseWriter, d *dialog) {
	d.sayElsewhere(c)
	d.Action, d.Same = c.url("/do/"+d.Act.name), c.url("/same/"+d.Act.name)
	c.answerWith(w, "dialog", d)
}

// answerWith sends a template with a dialog.
func (c *Console) answerWith(w http.ResponseWriter, name string, d *dialog) {
	var out bytes.Buffer
	if err := c.templates["overview"].ExecuteTemplate(&out, name, d); err != nil {
		http.Error(w, "the dialog cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// curl is a request to the API as a command. SLUICE is the server's address.
func curl(method, path string, query url.Values, body map[string]any) string {
	at := `"$SLUICE` + httpapi.Root + strings.ReplaceAll(path, "$", "%24") // a shell would read a name such as $TOKEN as a variable
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	command := "curl -H \"Authorization: Bearer $TOKEN\" "
	if method != http.MethodGet {
		command += "-X " + method + " "
	}
	if body != nil {
		text, _ := json.Marshal(body) // it was made of texts and numbers
		command += "-H 'Content-Type: application/json' -d " + quoted(string(text)) + " "
	}
	return command + at + `"`
}

// doAct does an act, and answers with what came of it.
func (c *Console) doAct(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	v, d, ok := c.dialogOf(w, r, r.Form) // an undo has its values in the address
	if !ok {
		return
	}
	switch typed := strings.TrimSpace(d.Values.Get("confirm")); {
	case d.Problem != nil:
	case d.Confirm != "" && typed != d.Confirm:
		d.Problem = problemOf(invalid("confirm", errors.New("must be "+d.Confirm+", the number of jobs")))
	case d.NeedsReason() && strings.TrimSpace(d.Reason()) == "":
		d.Problem = problemOf(invalid("reason", errors.New("must be given")))
	}
	if d.Problem != nil {
		c.answerDialog(w, d)
		return
	}
	told, err := c.perform(r.Context(), v, d)
	if err != nil {
		if d.Problem = problemOf(err); d.Problem.Status == http.StatusGone {
			d.Values.Set("act_id", sluice.NewID().String()) // of the dialog that this answer is
		}
		c.answerDialog(w, d)
		return
	}
	w.Header().Set("HX-Trigger", told)
	w.WriteHeader(http.StatusNoContent)
}

// dialogsLive is how long a dialog can be confirmed.
const dialogsLive = 12 * time.Hour

// perform does the act of a dialog, and returns what the page is told. The act has the ID of the dialog, so that the stores do nothing if somebody has
// kept the request and sends it again.
func (c *Console) perform(ctx context.Context, v *visit, d *dialog) (told string, err error) {
	id, err := sluice.ParseID(d.Values.Get("act_id"))
	if err != nil || time.Since(id.Time()).Abs() > dialogsLive {
		return "", &httpapi.Problem{Status: http.StatusGone, Title: "Not done", Why: "the dialog was opened too long ago, or by another clock", Do: "confirm it once more"}
	}
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	answer, err := v.act(ctx, d)
	if err != nil {
		return "", err
	}
	c.shared.forget()
	text, _ := json.Marshal(map[string]outcome{"done": c.outcomeOf(d, answer)}) // texts
	return ascii(text), nil
}

// outcomeOf tells what came of an act.
func (c *Console) outcomeOf(d *dialog, answer answered) outcome {
	done := outcome{Text: d.Act.label + ": done", Failed: answer.failures()}
	if d.Act.done != nil {
		done.Text, done.Stays = d.Act.done(answer), true
	}
	if d.Act.then != "" {
		done.Go = c.options.Base + fillIn(d.Act.then, answer.values(), url.PathEscape)
	}
	if d.Act.undo != "" && len(done.Failed) == 0 {
		undo := maps.Clone(d.Values)
		undo.Del("confirm")
		undo.Set("act_id", sluice.NewID().String())
		undo.Set("reason", strings.TrimSuffix("undo: "+d.Reason(), ": "))
		done.Undo = c.options.Base + "/do/" + d.Act.undo + "?" + undo.Encode()
	}
	return done
}

// outcome tells the page what came of an act.
type outcome struct {
	Text   string   `json:"text"`
	Failed []string `json:"failed,omitempty"`
	// Undo is the address that takes the act back at once.
	Undo string `json:"undo,omitempty"`
	// Stays keeps the text on the page until somebody has read it.
	Stays bool   `json:"stays,omitempty"`
	Go    string `json:"go,omitempty"`
}

// ascii writes JSON for a header, which has no other letters.
func ascii(text []byte) string {
	var out strings.Builder
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			out.WriteString(`\u` + strconv.FormatInt(int64(0xd800+r>>10), 16) + `\u` + strconv.FormatInt(int64(0xdc00+r&0x3ff), 16))
		default:
			out.WriteString(`\u` + strconv.FormatInt(int64(0x10000+r), 16)[1:])
		}
	}
	return out.String()
}

// answered is an answer to an act.
type answered map[string]any

// failures are the jobs that an act left as they were, with the reasons.
func (a answered) failures() (texts []string) {
	failed, _ := a["failed"].([]any)
	for _, one := range failed {
		job, _ := one.(map[string]any)
		why, _ := job["error"].(map[string]any)
		id, _ := job["id"].(string)
		cause, _ := why["why"].(string)
		texts = append(texts, id+": "+cause)
	}
	return texts
}

// values are the texts of an answer, for the address of the next page.
func (a answered) values() url.Values {
	values := url.Values{}
	for name, value := range a {
		switch v := value.(type) {
		case string:
			values.Set(name, v)
		case map[string]any:
			if id, is := v["id"].(string); is {
				values.Set(name, id)
			}
		}
	}
	return values
}

// act sends the request of an act. Its act_id makes it the same act when a person sends it twice.
func (v *visit) act(ctx context.Context, d *dialog) (answered, error) {
	method, path, query, body, err := d.Act.request(v.console.api, d.Values)
	if err != nil {
		return nil, err
	}
	v.caller.header.Set("Idempotency-Key", d.Values.Get("act_id"))
	var sent any
	if body != nil {
		sent = body
	}
	text, err := v.caller.send(ctx, method, path, query, sent)
	if err != nil {
		return nil, err
	}
	out := answered{}
	_ = json.Unmarshal(text, &out) // an answer that is no object has nothing to show
	return out, nil
}

// asText writes a value of an answer.
func asText(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
