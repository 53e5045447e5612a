package console

import "testing"

func TestCronExpressionsAreSaidInWords(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"30 2 * * *": "each day at 02:30", "0 30 2 * * *": "each day at 02:30", "*/5 * * * *": "every 5 minutes", "* * * * *": "each minute",
		"0 9,17 * * 1-5": "at 09:00, 17:00 on Monday to Friday", "15 * * * *": "each hour at minute 15", "0 */6 * * *": "every 6 hours at minute 0",
		"0 0 1 * *": "at 00:00 on day 1 of the month", "0 12 * jan,jul sun": "at 12:00 on Sunday in January, July", "@daily": "each day at 00:00",
		"@every 10m": "every 10m", "*/10 8-18 * * *": "every 10 minutes in the hours 8 to 18", "0,30 4 * * *": "at the minutes 0, 30 of the hours 4",
		"5 8-18 * * *": "at minute 5 of the hours 8 to 18", "10 5 30 2 * * *": "10 5 30 2 * * *", "nonsense": "nonsense",
	} {
		if got := cronWords(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
