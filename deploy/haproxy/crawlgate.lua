-- crawlgate behind HAProxy (2.6 or later): asks the decision service about each request. docs/behind-your-proxy.md explains
-- it. haproxy.cfg calls it as `http-request lua.crawlgate`.

-- Where `crawlgate decide` listens (the backend `crawlgate` needs the same address), and how long its answer may take, in
-- milliseconds. HAProxy asks three more times without an answer: together 1 s.
local service = os.getenv("CRAWLGATE") or "127.0.0.1:9180"
local timeout = 250

-- Fields of a response that passes, and the variables in which haproxy.cfg finds them.
local fields = {
    ["x-robots-tag"] = "tags",
    ["crawlgate-tags-html"] = "tags_html",
    ["crawlgate-tags-pdf"] = "tags_pdf",
    ["crawlgate-tags-image"] = "tags_image",
    ["crawlgate-tags-video"] = "tags_video",
    ["crawlgate-tags-other"] = "tags_other",
    ["link"] = "link",
    ["content-signal"] = "signal",
    ["content-usage"] = "usage",
    ["tdm-reservation"] = "reservation",
    ["tdm-policy"] = "tdm_policy",
}

-- Fields of the client's request that the question needs. What a client sends besides cannot spoil the question.
-- A question needs no bound: it has little more than the client's request, for which HAProxy leaves `tune.maxrewrite` free.
local needed = { "accept", "authorization", "referer", "signature", "signature-agent", "signature-input", "user-agent" }

-- HAProxy has the lines of a field as a table that begins with 0.
local function lines(values)
    local list = {}
    for place = 0, #values do
        if values[place] ~= nil then
            list[#list + 1] = values[place]
        end
    end
    return list
end

-- One line for each field: HAProxy does not survive a question of more lines than `tune.http.maxhdr` (101). A client with two
-- names is refused: the application might read the other one.
local function question(txn, sent)
    local headers = {}
    for _, name in ipairs(needed) do
        if sent[name] then
            local values = lines(sent[name])
            assert(name ~= "user-agent" or #values == 1)
            headers[name] = { table.concat(values, ", ") }
        end
    end
    headers["x-forwarded-method"] = { txn.sf:method() }
    headers["x-forwarded-uri"] = { txn.sf:pathq() }
    headers["x-forwarded-host"] = { txn.sf:req_fhdr("host") }
    headers["x-forwarded-for"] = { txn.sf:src() }
    return headers
end

local function ask(headers)
    return core.httpclient():get({
        url = "http://" .. service .. "/decide/forward-auth",
        headers = headers,
        timeout = timeout,
    })
end

-- A request about which no question can be asked.
local function refuse(txn)
    local reply = txn:reply()
    reply:set_status(403)
    txn:done(reply)
end

local function decide(txn)
    local sent = txn.http:req_get_headers()
    -- A health check in HTTP/1.0. With a User-Agent the question has no host, and crawlgate refuses it.
    if not sent["host"] and not sent["user-agent"] then
        return
    end
    local is_question, headers = pcall(question, txn, sent)
    if not is_question then
        return refuse(txn)
    end
    local ok, answer = pcall(ask, headers)
    local headers = ok and answer.headers or {}
    local server = headers["server"] and headers["server"][0]
    if server ~= "crawlgate" then
        -- Fails open: requests pass, and responses have `Crawlgate: unavailable`. To fail closed, see haproxy.cfg.
        txn:set_var("txn.crawlgate_unavailable", true)
        return
    end
    if headers["crawlgate-decision"] then
        for name, variable in pairs(fields) do
            if headers[name] then
                txn:set_var("txn.crawlgate_" .. variable, headers[name][0])
            end
        end
        return
    end
    -- A refusal, as it is.
    local reply = txn:reply()
    reply:set_status(answer.status, answer.reason)
    for name, values in pairs(headers) do
        if name ~= "connection" and name ~= "content-length" and name ~= "date" then
            for _, value in ipairs(lines(values)) do
                reply:add_header(name, value)
            end
        end
    end
    reply:set_body(answer.body or "")
    txn:done(reply)
end

core.register_action("crawlgate", { "http-req" }, decide, 0)
