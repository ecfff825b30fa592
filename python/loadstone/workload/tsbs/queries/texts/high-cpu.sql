SELECT * FROM cpu WHERE usage_user > 90.0 and time >= '{start}' AND time < '{end}' {hosts}
