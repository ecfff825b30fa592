select count(*) as cnt, avg(distance) as dis from flights where flight_month = 10
