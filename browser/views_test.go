package browser_test

import "testing"

func TestAViewOfTheJobsIsSavedAndOpenedAgain(t *testing.T) {
	t.Parallel()
	s := serving(t)
	s.sluice(t, "enqueue", "mail", "{}", "--delay", "1h")
	p := open(t, s, "/jobs?q=queue:mail&state=scheduled&cols=due&cols=state")
	p.click(`details.save summary`)
	p.js(`document.querySelector("#save-view input").value = "Mail <b>tonight</b>"`)
	p.click(`#save-view button`)
	p.until(`document.querySelector("#views a[aria-current]")?.textContent === "Mail <b>tonight</b>"`)
	p.goTo("queues")
	p.until(`document.querySelector("#views a") && !document.querySelector("#views a[aria-current]")`)
	p.click(`#views a`)
	p.until(`location.pathname === "/jobs" && document.querySelector("input[name=q]")?.value === "queue:mail" && document.querySelector("#live tbody tr")`)
	p.click(`#views button`)
	p.until(`document.getElementById("views").hidden && document.activeElement.id === "main"`)
}
