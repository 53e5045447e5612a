package console

import (
	"net/http"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// dialogsLive is how long a dialog can be confirmed.
const dialogsLive = 12 * time.Hour

// once lets each dialog act once: a request that somebody has kept and sends again gets the first answer, and does
// nothing. The act's ID says when the dialog was opened. A process knows what it has done itself; it refuses dialogs from
// before its start.
type once struct {
	began time.Time

	mu   sync.Mutex
	acts map[sluice.ID]string // the outcome; empty: the act is being done
}

// begin begins an act that no other request may do from now on. One that was done has an outcome.
func (o *once) begin(text string) (outcome string, err error) {
	id, err := sluice.ParseID(text)
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	outcome, known := o.acts[id]
	switch {
	case err != nil:
		return "", again(http.StatusGone, "the request comes from no dialog")
	case known && outcome == "":
		return "", again(http.StatusConflict, "another request is about to do the act")
	case known:
		return outcome, nil
	case id.Time().Before(o.began.Truncate(time.Millisecond)):
		return "", again(http.StatusGone, "the server has started anew since the dialog was opened, and does not know whether the act was done")
	case now.Sub(id.Time()).Abs() > dialogsLive:
		return "", again(http.StatusGone, "the dialog was opened too long ago, or by another clock")
	}
	for old := range o.acts {
		if now.Sub(old.Time()) > dialogsLive {
			delete(o.acts, old)
		}
	}
	o.acts[id] = ""
	return "", nil
}

// end keeps the outcome of an act. Empty: it was not done, and may be tried again.
func (o *once) end(text, outcome string) {
	id, err := sluice.ParseID(text)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.acts[id] = outcome; outcome == "" {
		delete(o.acts, id)
	}
}

// again refuses an act that a person may confirm once more.
func again(status int, why string) error {
	return &httpapi.Problem{Status: status, Title: "Not done", Why: why, Do: "look whether it is done; if not, confirm it once more"}
}
