package scrub

import (
	"slices"
	"strings"
	"sync"
)

// prefixes begin vendors' keys of variable length. At least 14 characters follow.
var prefixes = []string{
	"sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_", "xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-",
	"xoxs-", "xoxc-", "xoxd-", "xapp-", "aiza", "ya29.", "1//0", "gocspx-", "glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "gloas-", "glsoat-", "npm_",
	"pypi-", "hf_", "sg.", "shpat_", "shpss_", "shpca_", "shppa_", "dop_v1_", "doo_v1_", "dor_v1_", "dckr_pat_", "dckr_oat_", "sq0csp-", "sq0atp-",
	"lin_api_", "lin_oauth_", "tskey-", "age-secret-key-", "nvapi-", "gsk_", "r8_", "pplx-", "xai-", "atatt3", "atctt3", "atbb", "figd_", "figo_",
	"secret_", "ntn_", "pul-", "hvs.", "hvb.", "hvr.", "rdme_", "sbp_", "sb_secret_", "vercel_", "vcp_", "nrak-", "nrii-", "nraa-", "nrjs-", "ltai",
	"akid", "glsa_", "glc_", "sntrys_", "sntryu_", "pscale_tkn_", "pscale_pw_", "pscale_oauth_", "dp.pt.", "dp.st.", "dp.ct.", "pmak-",
	"rubygems_", "rnd_", "nfp_", "fo1_", "fm2_", "bkua_", "ccipat_", "cfpat-", "re_", "tfp_", "sl.", "dapi", "eaac", "eaag", "eaab", "duffel_", "shippo_",
	"flwseck_test-", "flwseck-", "lsv2_pt_", "lsv2_sk_", "phx_", "phc_", "patkey", "key-", "squ_", "sqp_", "sqa_", "ops_eyj", "xkeysib-", "mlsn.",
	"napi_", "cio_", "posthog_", "infracost_", "ico-", "hrku-", "bb_live_", "bb_test_", "fga_", "ddp_", "dnkey-", "aio_", "t3blbkfj",
}

// prefixed finds a key that begins with one of prefixes.
func prefixed(t *text, start, _ int) (from, to int, found bool) {
	if wordBefore(t.s, start) || start > 0 && (t.s[start-1] == '-' || t.s[start-1] == '.') {
		return 0, 0, false
	}
	end := t.dotted(start)
	if strings.HasPrefix(t.s[start:], "1//0") {
		end = t.key(start + len("1//"))
	}
	for end > start && (t.s[end-1] == '.' || t.s[end-1] == '-') {
		end--
	}
	if end-start < 18 || !isKey(t.s[start:min(end, start+judged)]) {
		return 0, 0, false
	}
	return start, end, true
}

// isKey reports whether a value is generated, unlike names such as sk-learn-1-and-others: in a long stretch of
// it, letters and digits alternate.
func isKey(value string) bool {
	if !isMixed(value) {
		return false
	}
	turns := 0
	for i := 1; i < len(value); i++ {
		if before, now := kindOf(value[i-1]), kindOf(value[i]); before != 0 && now != 0 && before != now {
			turns++
		}
	}
	return turns >= 3 && longestAlnum(value) >= 7
}

// githubPrefixes begin tokens of GitHub.
var githubPrefixes = []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}

func githubToken(t *text, start, end int) (from, to int, found bool) {
	to = t.key(start)
	return start, to, to-end >= 20 && t.s[start:end] == strings.ToLower(t.s[start:end])
}

// awsPrefixes begin the ids of AWS access keys.
var awsPrefixes = []string{"akia", "asia", "abia", "acca", "a3t", "aroa", "aida"}

func awsKeyID(t *text, start, _ int) (from, to int, found bool) {
	const length = 20
	to = start + length
	if to > len(t.s) || wordBefore(t.s, start) || wordAt(t.s, to) {
		return 0, 0, false
	}
	return start, to, strings.Trim(t.s[start:to], uppers+digits) == "" && hasDigit(t.s[start:to])
}

// webhooks are URLs that are keys themselves, with the least length of their secret part.
var webhooks = []struct {
	word  string
	least int
}{
	{"hooks.slack.com/", 20},
	{"discord.com/api/webhooks/", 20},
	{"discordapp.com/api/webhooks/", 20},
	{".webhook.office.com/", 20},
	{"outlook.office.com/webhook/", 20},
	{"hooks.zapier.com/hooks/", 10},
	{"maker.ifttt.com/", 20},
	{"api.telegram.org/bot", 20},
	{"api.telegram.org/file/bot", 20},
	{"chat.googleapis.com/v1/spaces/", 20},
	{"events.pagerduty.com/integration/", 20},
	{"hooks.mattermost.com/hooks/", 10},
	{"open.feishu.cn/open-apis/bot/v2/hook/", 20},
	{"qyapi.weixin.qq.com/cgi-bin/webhook/send?", 20},
	{"oapi.dingtalk.com/robot/send?", 20},
	{"uptime.betterstack.com/api/v1/heartbeat/", 10},
	{"hc-ping.com/", 20},
}

var webhookWords = sync.OnceValue(func() []string {
	var all []string
	for _, w := range webhooks {
		all = append(all, w.word)
	}
	return all
})

// webhook finds the path and the query behind a host whose URLs are keys.
func webhook(t *text, start, end int) (from, to int, found bool) {
	place := slices.Index(webhookWords(), strings.ToLower(t.s[start:end]))
	to = trimURL(t.s, end, t.token(end))
	return end, to, place >= 0 && to-end >= webhooks[place].least && hasDigit(t.s[end:min(to, end+judged)])
}

// telegramBot finds 123456789:AA… by its `:AA`.
func telegramBot(t *text, start, _ int) (from, to int, found bool) {
	from = start
	for from > 0 && start-from < 12 && isDigit(t.s[from-1]) {
		from--
	}
	to = t.key(start + 1)
	return from, to, start-from >= 6 && to-start >= 33 && to-start <= 40 && isMixed(t.s[start:to])
}
