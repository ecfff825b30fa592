select origin_city, dest_city, count(*) as cnt, avg(airtime) as atime
from flights
group by origin_city, dest_city
order by cnt desc, atime
