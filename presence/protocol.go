package presence

import (
	"fmt"
	"time"
)

// compareProtocols adds ConditionProtocol to each process that is alive and speaks another protocol than the newest one, or
// a newer one than this program.
func compareProtocols(holders []Holder, now time.Time) {
	newest := Protocol
	for _, h := range holders {
		if h.Alive(now) {
			newest = max(newest, h.Protocol)
		}
	}
	for i := range holders {
		h := &holders[i]
		if !h.Alive(now) || h.Protocol == 0 { // it does not say
			continue
		}
		switch {
		case h.Protocol > Protocol:
			h.Conditions = append(h.Conditions, protocolCondition(
				fmt.Sprintf("it speaks protocol %d, and this program only %d: this program may misread what the process does", h.Protocol, Protocol),
				"look with the newer program",
			))
		case h.Protocol < newest:
			h.Conditions = append(h.Conditions, protocolCondition(
				fmt.Sprintf("it speaks protocol %d, and others speak %d: others may rely on what it does not do", h.Protocol, newest),
				"deploy the newer program to all; `sluice migrate` of the newer program renews the functions of workers in other languages",
			))
		}
	}
}

func protocolCondition(text, repair string) Condition {
	return Condition{Kind: ConditionProtocol, Text: text, Repair: repair}
}

// Mismatch returns the condition of each process whose protocol differs, by its id, and nothing else.
func Mismatch(holders []Holder, now time.Time) map[string]Condition {
	own := make([]Holder, len(holders))
	for i, h := range holders {
		own[i] = h
		own[i].Conditions = nil
		if _, old := h.tooOld(); old {
			own[i].Seen = time.Time{} // it does no work
		}
	}
	compareProtocols(own, now)
	differ := make(map[string]Condition)
	for _, h := range own {
		if len(h.Conditions) > 0 {
			differ[h.ID] = h.Conditions[0]
		}
	}
	return differ
}
