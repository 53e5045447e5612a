-- Removes secrets and personal data of a well-known form from a text before it is stored. Such a text is an error of a
-- worker in another language. The rules are fewer and simpler than the rules of the Go package scrub, which also sees
-- these texts when they are logged. Each row is a pattern and its replacement.
create or replace function sluice._scrubbed(given text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp set standard_conforming_strings = on as $function$
declare
    -- the names of secrets, and a sign with the blanks around it
    names constant text := '(?:password|passwd|passphrase|pwd|secret|token|credential|(?:api|access|private|auth|client|account|master|signing|encryption|shared)[ _-]?key)s?[0-9]{0,2}';
    sign  constant text := '\\*["'']?\]?(?:\s{0,4}(?::=|=>|==|=|:)\s{0,4}|\s+(?:is|was)\s+)\[?';
    rules constant text[] := array[
        ['(?i)-----BEGIN [A-Z ]*?PRIVATE KEY.*?(?:-----END [A-Z ]*?PRIVATE KEY(?: BLOCK)?-----|$)', '[redacted:private_key]'],
        ['\meyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,4}', '[redacted:jwt]'],
        -- in addresses: scheme://user:password@host, user:password@tcp(host), parameters, webhooks
        ['(?i)(\m[a-z][a-z0-9+.-]*://[^\s/@:"'']*:)[^\s/?#"'']+@', '\1[redacted:password]@'],
        ['(?i)(\m[\w.-]+:)[^\s"'']{1,100}(@(?:tcp6?|udp|unix)\()', '\1[redacted:password]\2'],
        ['(?i)([?&](?:key|sig|signature|code|auth|x-amz-signature|x-amz-security-token|x-goog-signature)=)(?=[^&\s"'']*\d)[^&\s"''#]{16,}', '\1[redacted:password]'],
        ['(?i)(hooks\.slack\.com/|discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot|\.webhook\.office\.com/)[^\s"'']{16,}', '\1[redacted:vendor_key]'],
        -- in headers
        ['(?i)(\m(?:bearer|basic)\s+)(?=[^\s"'']*\d)[a-z0-9._~+/=-]{8,}', '\1[redacted:password]'],
        ['(?i)(\mcookie["'']?:\s*)[^\r\n"''=;]+=[^\r\n"'']+', '\1[redacted:password]'],
        -- after a name: a quoted value, a value with a letter and a digit, or any password after `=`
        ['(?i)(' || names || sign || '\\*")(?![$<{%*])(?:[^"\\\r\n]|\\+[^"\\])+', '\1[redacted:password]'],
        ['(?i)(' || names || sign || '\\*'')(?![$<{%*])(?:[^''\\\r\n]|\\+[^''\\])+', '\1[redacted:password]'],
        ['(?i)(' || names || sign || ')(?![$<{%*("''\\/[])(?=[^\s"'',;&]*\d)(?=[^\s"'',;&]*[a-z])[^\s"'',;&]{4,}[^\s"'',;&:.)}\]]', '\1[redacted:password]'],
        ['(?i)((?:password|passwd|passphrase|pwd)=)(?![$<{%*("''\\/[])[^\s"'',;&]{4,}[^\s"'',;&:.)}\]]', '\1[redacted:password]'],
        ['(?i)(<(?:password|passwd|secret|token|apikey|clientsecret)>)[^<]{3,}', '\1[redacted:password]'],
        ['(?i)(\s--?(?:[a-z]+-)?(?:password|token|secret|api-?key)\s)(?=\S*\d)[^\s"'']{6,}', '\1[redacted:password]'],
        ['(?i)(\mpassword\s+e?'')[^'']+', '\1[redacted:password]'],
        ['(?i)(\midentified\s+(?:with\s+\S+\s+)?by\s+'')[^'']+', '\1[redacted:password]'],
        -- keys that are known by their own form
        ['\m(?:AKIA|ASIA)[A-Z0-9]{16}\M', '[redacted:aws]'],
        ['\m(?:gh[pousr]_|github_pat_)\w{20,}', '[redacted:github]'],
        ['\m(?:sk-|[sr]k_(?:live|test)_|whsec_|xox[a-z]-|xapp-|AIza|ya29\.|GOCSPX-|glpat-|glrt-|gldt-|npm_|pypi-|hf_|SG\.|shpat_|dop_v1_|dckr_pat_|hv[sb]\.|ATBB|ATATT3|NRAK-|LTAI|gsk_|lin_api_|PMAK-)(?=[\w.-]*\d)[\w-][\w.-]{12,}\w',
         '[redacted:vendor_key]'],
        -- data of persons and hosts
        ['(?i)(?!git@)\m[a-z0-9][a-z0-9._%+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}\M', '[redacted:email]'],
        ['\m(?!127\.|0\.|255\.)(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\M(?!\.\d)', '[redacted:ip]'],
        ['(?i)\m(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2})(?:(?::[0-9a-f]{1,4}){7}|(?::[0-9a-f]{1,4}){0,6}::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,5})?)', '[redacted:ip]'],
        ['(/(?:home|Users)/)(?!\d+(?:[/\s]|$))[^][\s/:"'']+', '\1[redacted:home_path]'],
        ['\m(?:4\d{3}|5[1-5]\d{2})([ -])\d{4}\1\d{4}\1\d{4}\M', '[redacted:card]']];
    clean text := given;
    rule  text[];
begin
    foreach rule slice 1 in array rules loop
        clean := regexp_replace(clean, rule[1], rule[2], 'g');
    end loop;
    return clean;
end
$function$;
